package pipeline

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/align"
	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// While partitions of enriched events catch up, records beyond the limit of package align wait, and other partitions go on.

// heldBack is what was fetched of a partition and waits.
type heldBack struct {
	mapping                        // its record is the next one; nothing while that is the first of later
	later   []*fetch.PartitionData // not empty then
}

// next returns the timestamp of the next record, in ms, as far as it is known.
func (h *heldBack) next() int64 {
	if h.fetched == nil {
		return state.MinTime
	}
	return h.record.Timestamp
}

// reportInterval is how often a worker reports where its partitions are.
const reportInterval = 50 * time.Millisecond

// mustWait reports whether the record that was read last is beyond the limit.
func (w *worker) mustWait() bool {
	return w.alignment != nil && w.alignment.MustWait(w.from.Partition, w.record.Timestamp)
}

// holdBack leaves the current partition at the record that was read last.
func (w *worker) holdBack() {
	p := w.from
	if w.alignment.FirstWaits() {
		w.log.Info("partitions catch up in step, since events are enriched: one that is ahead waits", "topic", p.Topic, "partition", p.ID)
	}
	if p.held == nil {
		p.held = &heldBack{}
		w.waiting++
		w.poller.Hold(p.Topic, p.ID, true)
	}
	p.position = w.record.Offset // also past markers of transactions, or other processes would take it to be at a record before
	w.current.extend(p)
	w.again = true
	p.held.mapping, w.mapping = w.mapping, mapping{}
	w.reportReached()
}

// takeHeld goes on with the partition that has come least far of those that need not wait any more. It reports whether there is
// one.
func (w *worker) takeHeld() bool {
	if w.waiting == 0 {
		return false
	}
	var p *assignedPartition
	limit := w.alignment.Limit()
	for _, q := range w.partitions {
		if q.held != nil && q.held.next() <= limit && (p == nil || q.held.next() < p.held.next()) {
			p = q
		}
	}
	if p == nil {
		return false
	}
	h := p.held
	if h.fetched != nil {
		w.mapping, h.mapping = h.mapping, mapping{}
	} else {
		part := h.later[0]
		h.later = h.later[1:]
		if w.poller.Current(part) {
			w.read(part)
		} else {
			part.Release()
		}
	}
	if len(h.later) == 0 {
		w.endHold(p)
	}
	return true
}

// dropHeld drops what waits of a partition.
func (w *worker) dropHeld(p *assignedPartition) {
	if p.held == nil {
		return
	}
	if p.held.fetched != nil {
		p.held.fetched.Release()
	}
	for _, part := range p.held.later {
		part.Release()
	}
	w.endHold(p)
}

func (w *worker) endHold(p *assignedPartition) {
	p.held = nil
	w.waiting--
	w.poller.Hold(p.Topic, p.ID, false)
}

// unapplied returns the least timestamp, in ms, of the records of each partition that are mapped and not applied.
func (w *worker) unapplied() map[*assignedPartition]int64 {
	least := map[*assignedPartition]int64{}
	add := func(b *workerBatch) {
		for i, p := range b.partitions {
			if at := b.spans[i].least; at < state.MaxTime && p.lease.number == b.leases[i] {
				if before, ok := least[p]; !ok || at < before {
					least[p] = at
				}
			}
		}
	}
	add(w.current)
	if w.applying {
		add(w.other)
	}
	return least
}

// reportReached reports where the partitions are.
func (w *worker) reportReached() {
	left, unapplied := w.poller.Left(), w.unapplied()
	var reports []align.Report
	for id, p := range w.partitions {
		if !p.active() {
			continue
		}
		n, known := left[id]
		r := align.Report{Partition: id, At: p.reached, Applied: p.applied}
		switch at, ok := unapplied[p]; {
		case ok:
			r.At = max(r.At, at)
			reports = append(reports, r)
		case p.held == nil:
			r.CaughtUp = known && n == 0 && (w.fetched == nil || w.from != p)
			reports = append(reports, r)
		case p.held.fetched != nil:
			r.At, r.Waits = p.held.next(), true
			reports = append(reports, r)
		}
	}
	w.alignment.Report(reports)
}

// align follows the partitions of other processes, if events are enriched.
func (p *Processor) align(ctx context.Context, r *features.Registry) {
	if len(enrich.Streams(r)) == 0 {
		return
	}
	poller := fetch.NewPoller(fetch.PollerConfig{
		Transport: p.cfg.Transport, Bootstrap: kafka.TCP(p.cfg.Brokers...), Isolation: p.cfg.Isolation, Logger: p.log,
	})
	defer poller.Close()
	others := align.Others{Alignment: p.alignment, Topics: r.Topics(), Brokers: poller, Store: p.cfg.Store}
	others.Follow(ctx)
}
