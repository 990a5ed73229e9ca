package pipeline

import (
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/recovery"
)

// Whether a record repeats an earlier one depends on the log before it (record.Earlier). So a partition of a topic with
// such streams is read from further back than its progress, and what comes before that is remembered and not mapped.

// readBack makes the partition remember what it reads before its position, and returns where it is read from.
func (w *worker) readBack(p *assignedPartition, found *recovery.Resumption) fetch.Known {
	from := found.Known
	p.earlier, p.unread, p.cut = record.NewEarlier(w.streams, p.Topic, found.Seal.Secret()), broken{}, 0
	if p.earlier != nil && found.From < from.Offset {
		from.Offset, from.Epoch = found.From, -1
		w.log.Debug("reading back, to know repeated events", "topic", p.Topic, "partition", p.ID, "from", found.From, "to", found.Known.Offset)
	}
	return from
}

// note remembers a record before the position of the current partition. It returns false if a schema is missing: the
// partition is then stopped.
func (w *worker) note(rec *fetch.Record) bool {
	of := w.recordOf(rec)
	lacks, err := w.withSchemas(func() error { return w.mapper.Note(&of) })
	w.mapper.Forged = 0 // it was counted
	if lacks != nil {
		w.stop(w.from, err)
		w.from.pause.lacks = lacks
		return false
	}
	return true
}

// passUnread goes on after a batch before the position of the current partition that cannot be decoded. What is in it
// cannot be repeated.
func (w *worker) passUnread(e *fetch.CorruptError) {
	p := w.from
	if p.unread.offset != e.Offset {
		p.unread = broken{offset: e.Offset}
	}
	p.unread.failures++
	to := e.Offset
	if !e.FetchAgain(p.unread.failures) {
		to = p.position
		if e.EndOffset >= 0 {
			to = min(to, e.EndOffset)
		}
		w.log.Warn("a batch cannot be decoded; repetitions of its events would count", "topic", p.Topic, "partition", p.ID,
			"first", e.Offset, "end", to, "error", e.Reason)
	}
	w.fetched.Release()
	w.fetched = nil
	w.poller.Seek(p.Topic, p.ID, to)
}

// tellCut counts the events that the current partition no longer remembers although they could be repeated, and logs the
// first ones.
func (w *worker) tellCut() {
	p := w.from
	if p.earlier == nil || p.earlier.Cut == p.cut {
		return
	}
	if p.cut == 0 {
		w.log.Warn("the log has more records within dedup than are remembered; repetitions that come later than that count",
			"topic", p.Topic, "partition", p.ID, "records", record.MaxEarlier)
	}
	w.metrics.forgotten.WithLabelValues(p.Topic).Add(float64(p.earlier.Cut - p.cut))
	p.cut = p.earlier.Cut
}
