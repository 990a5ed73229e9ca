package pipeline

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// broken is the record batch that a partition cannot get past because it cannot be decoded. The zero value means that
// there is none.
type broken struct {
	offset   int64 // the first offset not read
	failures int   // consecutive failures to decode it
}

func (b *broken) met() bool { return b.failures > 0 }

// The ways to handle a batch that cannot be decoded; a label of the metrics.
const (
	brokenStopped  = "stopped"
	brokenSetAside = "set_aside"
)

// brokenBatchError says that a partition is stopped at a batch that cannot be decoded, and how to continue.
type brokenBatchError struct{ *fetch.CorruptError }

func (e *brokenBatchError) Error() string {
	name := state.Partition{Topic: e.Topic, ID: e.Partition}
	if e.EndOffset < 0 {
		return fmt.Sprintf("the batch at offset %d cannot be decoded: %v; its end is unknown, so it cannot be set aside: "+
			"find where the next one begins, with kafka-dump-log.sh, and run: weir progress set %s --to OFFSET --yes", e.Offset, e.Reason, name)
	}
	setting := "kafka.on_broken_batch"
	if e.Damaged() {
		setting = "kafka.on_damaged_batch"
	}
	return fmt.Sprintf("the batch of offsets %d to %d cannot be decoded: %v; to go on without it, "+
		"run: weir progress set %s --to %d --yes, or set %s to set_aside, which writes a dead letter of it",
		e.Offset, lastOf(e.CorruptError), e.Reason, name, lastOf(e.CorruptError)+1, setting)
}

// StopReason returns the metric's label.
func (*brokenBatchError) StopReason() string { return "broken_batch" }

func (e *brokenBatchError) Unwrap() error { return e.CorruptError }

// handleBroken handles a batch that the current partition cannot get past: it sets the batch aside, or stops the
// partition and tries again.
func (w *worker) handleBroken(err error) {
	p, e := w.from, err.(*fetch.CorruptError) //nolint:errorlint // Decoder.Next returns no other
	if e.Offset < p.position {
		w.skipUnread(e)
		return
	}
	if p.broken.offset != e.Offset {
		p.broken = broken{offset: e.Offset}
	}
	p.broken.failures++
	aside := w.cfg.SetBrokenAside
	if e.Damaged() {
		aside = w.cfg.SetDamagedAside
	}
	if aside && e.EndOffset >= 0 && !e.FetchAgain(p.broken.failures) {
		w.setAside(e)
		return
	}
	w.metrics.broken.WithLabelValues(p.Topic, brokenStopped).Inc()
	w.stopAt(e.Offset, &brokenBatchError{e})
}

// setAside skips a batch of the current partition. A dead letter and a gap of the history are
// written before the progress passes it.
func (w *worker) setAside(e *fetch.CorruptError) {
	p, b := w.from, w.current
	w.begin(b)
	rangeIndex := b.rangeOf(p)
	letter := w.newBrokenLetter(rangeIndex, e)
	b.dead, b.gaps = append(b.dead, letter), append(b.gaps, gap{rangeIndex, e.Offset})
	b.outcomes[counted{rangeIndex, outcome{"", outcomeDead}}]++
	b.events++
	p.position = e.EndOffset
	b.extend(p)
	w.fetched.Release()
	w.fetched = nil
	w.poller.Seek(p.Topic, p.ID, p.position)
	w.metrics.broken.WithLabelValues(p.Topic, brokenSetAside).Inc()
	w.log.Error("a batch cannot be decoded and is set aside", "topic", p.Topic, "partition", p.ID,
		"first", e.Offset, "last", lastOf(e), "error", e.Reason)
	w.clearBroken(p)
}

// clearBroken records that a partition has got past the batch that had stopped it.
func (w *worker) clearBroken(p *assignedPartition) {
	if p.broken.met() && p.position > p.broken.offset {
		p.broken = broken{}
		w.report(p, nil)
		p.trouble.Over()
	}
}

// newBrokenLetter returns the dead letter of a batch of the current partition that is set aside. It has no value: the
// bytes are not records, and the log still has them.
func (w *worker) newBrokenLetter(rangeIndex int, e *fetch.CorruptError) deadLetter {
	last := strconv.FormatInt(lastOf(e), 10)
	return w.newDeadLetter(rangeIndex, &fetch.Record{Offset: e.Offset, Timestamp: e.Timestamp, Value: []byte{}}, &record.Poison{
		Reason:  record.BrokenBatch,
		Message: fmt.Sprintf("the batch of offsets %d to %s cannot be decoded: %v", e.Offset, last, e.Reason),
	}, [2]string{headerLastOffset, last})
}

// lastOf returns the last offset of a batch that cannot be decoded. If it has fewer records than it states, Offset may
// already be at its end.
func lastOf(e *fetch.CorruptError) int64 { return max(e.Offset, e.EndOffset-1) }

// gap is a part of a range whose records are skipped: no plan is applied to them.
type gap struct {
	rangeIndex int
	offset     int64 // the first of them
}

// recordGaps writes the batch's gaps into the history, and waits until all servers know of them. It reports whether it
// could before the context ended.
func (a *applier) recordGaps(ctx context.Context, b *workerBatch) bool {
	recorded := false
	for _, g := range b.gaps {
		r, p := &b.Ranges[g.rangeIndex], b.partitions[g.rangeIndex].Partition
		if r.Behind || state.Highest(r.Progress) > g.offset { // a shard is past it: it was recorded before
			continue
		}
		if !a.persist(ctx, func() error { return a.gap(ctx, p, time.Now().UnixMilli()) }) {
			return false
		}
		recorded = true
	}
	return !recorded || retry.Wait(ctx, a.grace)
}
