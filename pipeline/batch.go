package pipeline

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/state"
)

// batch is a batch under way through a worker: what to write, and what must be
// told of it once it is written.
type batch struct {
	state.Batch
	partitions []*partition // by source
	dead       []deadLetter
	enriched   []*enrich.Event // events of enriched streams, in the order of their records
	gaps       []gap
	events     int       // records mapped
	bytes      int       // of their values
	began      time.Time // when the first record came in
	timestamps []stamp   // of the records mapped, for their freshness
	outcomes   map[counted]int
	links      []trace.Link // to traces of the records; empty where nothing is traced
	// kept is the partition of which a part was mapped that cannot be read on from
	// here: the batch takes no more. Nil for none.
	kept *partition
	// failures says by source why its dead letters or enriched events could not
	// be written; the source is then marked Behind and nothing of it was applied.
	failures []error
	// unapplied says that the time to shut down was over before the store took
	// the batch.
	unapplied bool
}

// stamp is the timestamp of a record of a source, in ms.
type stamp struct {
	source int
	at     int64
}

// counted is of which source and what became of a record. Sources that are left out of
// what is applied do not count: they are read again.
type counted struct {
	source int
	outcome
}

// outcome is what became of a record, by stream: a label of the metrics.
type outcome struct{ stream, what string }

// What may become of a record.
const (
	applied   = "applied"
	late      = "late" // applied, but too late for at least one feature
	dead      = "dead"
	unmatched = "unmatched" // no stream of the topic takes it
)

func newBatch() *batch { return &batch{outcomes: make(map[counted]int)} }

func (b *batch) reset() {
	for _, p := range b.partitions {
		if p.in == b {
			p.in = nil
		}
	}
	clear(b.partitions)
	clear(b.dead)
	clear(b.enriched)
	clear(b.outcomes)
	b.Batch.Reset()
	b.partitions, b.dead, b.timestamps = b.partitions[:0], b.dead[:0], b.timestamps[:0]
	b.failures, b.enriched, b.links, b.gaps = b.failures[:0], b.enriched[:0], b.links[:0], b.gaps[:0]
	b.events, b.bytes, b.began, b.unapplied, b.kept = 0, 0, time.Time{}, false, nil
}

// source finds or makes the partition's share in the batch.
func (b *batch) source(p *partition) int {
	if p.in != b {
		p.in, p.index = b, len(b.Ranges)
		b.Ranges = append(b.Ranges, state.PartitionRange{Partition: p.underPlan, To: p.position, Epoch: p.epoch, Progress: p.progress, Lagging: p.lagging})
		b.partitions = append(b.partitions, p)
		b.failures = append(b.failures, nil)
	}
	return p.index
}

// extend takes the partition's share up to where the partition is mapped.
func (b *batch) extend(p *partition) {
	s := &b.Ranges[b.source(p)]
	s.To, s.Epoch = p.position, p.epoch
}

// drop takes the partition out of the batch: nothing of it is applied.
func (b *batch) drop(p *partition) {
	if p.in == b {
		b.Ranges[p.index].Behind = true
		p.in = nil
	}
}

// keep leaves the partition's share in the batch as it is, and closes the batch:
// what is read of the partition after it has been resumed goes to another one.
func (b *batch) keep(p *partition) {
	if p.in == b {
		p.in, b.kept = nil, p
	}
}

// fail leaves a source out of what is applied, and says why.
func (b *batch) fail(source int, err error) {
	b.Ranges[source].Behind = true
	b.failures[source] = err
}

// count notes what became of a record of a source.
func (b *batch) count(source int, o features.Outcome, err *record.Poison) {
	became := outcome{o.Stream, applied}
	switch {
	case err != nil:
		became = outcome{err.Stream, dead}
	case o.Stream == "":
		became = outcome{"", unmatched}
	case o.Late:
		became.what = late
	}
	b.outcomes[counted{source, became}]++
}
