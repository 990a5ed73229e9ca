package pipeline

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/state"
)

// workerBatch is a batch on its way through a worker: what to write, and what to report once it is
// written.
type workerBatch struct {
	state.Batch
	partitions []*assignedPartition // by range
	leases     []int                // of the partitions, by range
	spans      []span               // of the records mapped, by range
	dead       []deadLetter
	enriched   []*enrich.Event // events of enriched streams, in the order of their records
	gaps       []gap
	events     int            // records mapped
	bytes      int            // of their values
	began      time.Time      // when the first record was mapped
	live       *backfill.Live // counts it; nil while it has no records
	timestamps []stamp        // of the records mapped, for their freshness
	outcomes   map[counted]int
	links      []trace.Link // to traces of the records; empty if nothing is traced
	// kept is the partition that was mapped in part and is then resumed: the batch takes no more of it. It is nil if
	// there is none.
	kept *assignedPartition
	// failures holds for each range why its dead letters or enriched events could not be written;
	// the range is then marked Behind and nothing of it was applied.
	failures []error
	// unapplied means that the time to shut down ended before the store took the batch.
	unapplied bool
}

// stamp is the timestamp of a record of a range, in ms.
type stamp struct {
	rangeIndex int
	at         int64
}

// span is from the least to the greatest believed timestamp of records, in ms.
type span struct{ least, greatest int64 }

var noRecords = span{state.MaxTime, state.MinTime}

// counted is the outcome of a record, and its range. Ranges that are left out of the batch do not count: they are read
// again.
type counted struct {
	rangeIndex int
	outcome
}

// outcome is what happened to a record, by stream: a label of the metrics.
type outcome struct{ stream, what string }

// The outcomes of a record.
const (
	outcomeApplied   = "applied"
	outcomeLate      = "late" // applied, but too late for at least one feature
	outcomeDead      = "dead"
	outcomeRepeated  = "repeated"  // an earlier record had its event
	outcomeUnmatched = "unmatched" // no stream of the topic accepts it, or it is a copy for another namespace
)

func newBatch() *workerBatch { return &workerBatch{outcomes: make(map[counted]int)} }

func (b *workerBatch) reset() {
	for _, p := range b.partitions {
		if p.in == b {
			p.in = nil
		}
	}
	if b.live != nil {
		b.live.End()
		b.live = nil
	}
	clear(b.partitions)
	clear(b.dead)
	clear(b.enriched)
	clear(b.outcomes)
	b.Batch.Reset()
	b.partitions, b.leases, b.dead, b.timestamps = b.partitions[:0], b.leases[:0], b.dead[:0], b.timestamps[:0]
	b.spans = b.spans[:0]
	b.failures, b.enriched, b.links, b.gaps = b.failures[:0], b.enriched[:0], b.links[:0], b.gaps[:0]
	b.events, b.bytes, b.began, b.unapplied, b.kept = 0, 0, time.Time{}, false, nil
}

// rangeOf finds or makes the partition's range in the batch.
func (b *workerBatch) rangeOf(p *assignedPartition) int {
	if p.in != b {
		p.in, p.index = b, len(b.Ranges)
		b.Ranges = append(b.Ranges, state.PartitionRange{Partition: p.underPlan, To: p.position, Epoch: p.epoch, Progress: p.lease.progress, Lagging: p.lease.lagging})
		b.partitions, b.leases = append(b.partitions, p), append(b.leases, p.lease.number)
		b.spans, b.failures = append(b.spans, noRecords), append(b.failures, nil)
	}
	return p.index
}

// extend extends the partition's range up to where it is mapped.
func (b *workerBatch) extend(p *assignedPartition) {
	r := &b.Ranges[b.rangeOf(p)]
	r.To, r.Epoch = p.position, p.epoch
}

// drop removes the partition from the batch: nothing of it is applied.
func (b *workerBatch) drop(p *assignedPartition) {
	if p.in == b {
		b.Ranges[p.index].Behind = true
		p.in = nil
	}
}

// keep leaves the partition's range in the batch unchanged, and closes the batch: records of the partition after it
// resumes go to another batch.
func (b *workerBatch) keep(p *assignedPartition) {
	if p.in == b {
		p.in, b.kept = nil, p
	}
}

// fail leaves a range out of the batch, and records why.
func (b *workerBatch) fail(rangeIndex int, err error) {
	b.Ranges[rangeIndex].Behind = true
	b.failures[rangeIndex] = err
}

// count records the outcome of a record of a range.
func (b *workerBatch) count(rangeIndex int, o features.Outcome, err *record.Poison) {
	became := outcome{o.Stream, outcomeApplied}
	switch {
	case err != nil:
		became = outcome{err.Stream, outcomeDead}
	case o.Stream == "" && len(o.Repeats) > 0:
		became = outcome{o.Repeats[0], outcomeRepeated}
	case o.Stream == "":
		became = outcome{"", outcomeUnmatched}
	case o.Late:
		became.what = outcomeLate
	}
	b.outcomes[counted{rangeIndex, became}]++
}
