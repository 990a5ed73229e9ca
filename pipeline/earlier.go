package pipeline

import (
	"sync"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/state"
)

// Whether a record repeats an earlier one depends on the log before it (record.Earlier). So a partition of a topic with
// such streams is read from further back than its progress, and what comes before that is remembered and not mapped.

// memory is what a worker knows of the records of a partition's log before a position.
type memory struct {
	earlier  *record.Earlier
	position int64
	log      string // its tag
}

// memories hand memories of partitions that move from one worker of a pool to another: when the load is high is no time to
// read a log again.
type memories struct {
	mu sync.Mutex
	of map[state.Partition]memory
}

// put keeps a memory until it is taken or dropped.
func (m *memories) put(p state.Partition, is memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of[p] = is
}

// take returns the memory of a partition, and keeps it no longer. It is nil unless it is of that position.
func (m *memories) take(p state.Partition, position int64, log string) *record.Earlier {
	m.mu.Lock()
	defer m.mu.Unlock()
	is := m.of[p]
	delete(m.of, p)
	if is.position != position || is.log != log {
		return nil
	}
	return is.earlier
}

// drop drops the memories of partitions.
func (m *memories) drop(partitions []state.Partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range partitions {
		delete(m.of, p)
	}
}

// readBack makes the partition remember what it reads before its position, and returns where it is read from.
func (w *worker) readBack(p *assignedPartition, found *recovery.Resumption) fetch.Known {
	from := found.Known
	p.unread, p.cut, p.remembers = broken{}, 0, true
	if p.earlier = record.NewEarlier(w.streams, p.Topic, found.Seal.Secret()); p.earlier == nil {
		return from
	}
	if had := w.memories.take(p.Partition, from.Offset, p.log); had != nil {
		p.earlier, p.cut = had, had.Cut
		return from
	}
	if found.From < from.Offset {
		from.Offset, from.Epoch, p.remembers = found.From, -1, false
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

// leaveMemory leaves what is known of the records before the position of a partition for another worker.
func (w *worker) leaveMemory(p *assignedPartition) {
	if p.earlier != nil && p.remembers {
		w.memories.put(p.Partition, memory{p.earlier, p.position, p.log})
	}
}

// skipUnread goes on after a batch before the position of the current partition that cannot be decoded. What is in it
// cannot be repeated.
func (w *worker) skipUnread(e *fetch.CorruptError) {
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

// reportCut counts the events that the current partition no longer remembers although they could be repeated, and logs the
// first ones.
func (w *worker) reportCut() {
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
