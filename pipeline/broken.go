package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// broken is the batch of the log that a partition cannot get past because it
// cannot be decoded. The zero value is none.
type broken struct {
	offset   int64 // the first that was not read
	failures int   // to decode it, in a row
}

func (b *broken) is() bool { return b.failures > 0 }

// checksumTries is how often a batch with a wrong checksum is fetched before it
// is set aside: what failed may be a single read, or a replica that is replaced.
const checksumTries = 3

// What is done about a batch that cannot be decoded; a label of the metrics.
const (
	brokenStopped  = "stopped"
	brokenSetAside = "set_aside"
)

// BrokenBatchError says that a partition has stopped at a batch that cannot be
// decoded, and what lets it go on.
type BrokenBatchError struct{ *fetch.CorruptError }

func (e *BrokenBatchError) Error() string {
	name := recovery.Name(state.Partition{Topic: e.Topic, ID: e.Partition})
	if e.EndOffset < 0 {
		return fmt.Sprintf("the batch at offset %d cannot be decoded: %v; where it ends cannot be told, so it cannot be set aside: "+
			"find where the next one begins, with kafka-dump-log.sh, and run: weir progress set %s --to OFFSET --yes", e.Offset, e.Reason, name)
	}
	return fmt.Sprintf("the batch of offsets %d to %d cannot be decoded: %v; to go on without it, "+
		"run: weir progress set %s --to %d --yes, or set kafka.on_broken_batch to set_aside, which writes a dead letter of it",
		e.Offset, lastOf(e.CorruptError), e.Reason, name, lastOf(e.CorruptError)+1)
}

// StopReason is its label.
func (*BrokenBatchError) StopReason() string { return "broken_batch" }

func (e *BrokenBatchError) Unwrap() error { return e.CorruptError }

// meetBroken decides on a batch that the partition at hand cannot get past: it
// is set aside, or the partition stops and tries again.
func (w *worker) meetBroken(err error) {
	p, e := w.from, err.(*fetch.CorruptError) //nolint:errorlint // Decoder.Next returns no other
	if p.broken.offset != e.Offset {
		p.broken = broken{offset: e.Offset}
	}
	p.broken.failures++
	tried := p.broken.failures >= checksumTries || !errors.Is(e, fetch.ErrChecksum)
	if w.cfg.SetBrokenAside && e.EndOffset >= 0 && tried {
		w.setAside(e)
		return
	}
	w.metrics.broken.WithLabelValues(p.Topic, brokenStopped).Inc()
	// What came before the broken batch goes its way, in every shard: those that no
	// record of it touched would have all of it read again, each time that the batch
	// is tried. The rest is fetched again, for another batch: no partition may have
	// two shares in one, of which each would find its progress fit.
	p.position = e.Offset
	w.current.extend(p)
	w.current.keep(p)
	w.due = true
	w.stop(p, &BrokenBatchError{e})
}

// setAside passes over a batch of the partition at hand. What tells of it is
// written before the progress passes it: a dead letter, and a gap of the history.
func (w *worker) setAside(e *fetch.CorruptError) {
	p, b := w.from, w.current
	w.begin(b)
	source := b.source(p)
	letter := newBrokenLetter(source, p.Partition, e)
	b.dead, b.gaps = append(b.dead, letter), append(b.gaps, gap{source, e.Offset})
	b.outcomes[counted{source, outcome{"", dead}}]++
	b.events++
	p.position = e.EndOffset
	b.extend(p)
	w.fetched.Release()
	w.fetched = nil
	w.poller.Seek(p.Topic, p.ID, p.position)
	w.metrics.broken.WithLabelValues(p.Topic, brokenSetAside).Inc()
	w.log.Error("a batch cannot be decoded and is set aside", "topic", p.Topic, "partition", p.ID,
		"first", e.Offset, "last", lastOf(e), "error", e.Reason)
	w.passBroken(p)
}

// passBroken notes that a partition has got past the batch that had stopped it.
func (w *worker) passBroken(p *partition) {
	if p.broken.is() && p.position > p.broken.offset {
		p.broken = broken{}
		w.stopped(p, "")
		w.health.clear(p.String())
		p.trouble.Over()
	}
}

// newBrokenLetter tells of a batch that is set aside. It has no value: the bytes
// are no record, and those that can be had are in the log.
func newBrokenLetter(source int, p state.Partition, e *fetch.CorruptError) deadLetter {
	last := strconv.FormatInt(lastOf(e), 10)
	d := newDeadLetter(source, p, &fetch.Record{Offset: e.Offset, Timestamp: e.Timestamp, Value: []byte{}}, &record.Poison{
		Reason:  record.BrokenBatch,
		Message: fmt.Sprintf("the batch of offsets %d to %s cannot be decoded: %v", e.Offset, last, e.Reason),
	})
	d.message.Headers = append(d.message.Headers, kafka.Header{Key: headerLastOffset, Value: []byte(last)})
	return d
}

// lastOf is the last offset of a batch that cannot be decoded. One that has fewer
// records than it says may be at its end already.
func lastOf(e *fetch.CorruptError) int64 { return max(e.Offset, e.EndOffset-1) }

// gap is where a batch passes over records of a source that no plan is applied to.
type gap struct {
	source int
	offset int64 // the first of them
}

// markGaps writes the batch's gaps into the history, and waits until all know of them who
// answer questions. It says whether it could before the context ended.
func (a *applier) markGaps(ctx context.Context, b *batch) bool {
	marked := false
	for _, g := range b.gaps {
		s, p := &b.Ranges[g.source], b.partitions[g.source].Partition
		if s.Behind || state.Highest(s.Progress) > g.offset { // a shard is past it: it was marked before
			continue
		}
		if !a.persist(ctx, func() error { return a.gap(ctx, p, time.Now().UnixMilli()) }) {
			return false
		}
		marked = true
	}
	return !marked || retry.Wait(ctx, a.grace)
}
