package pipeline

import (
	"slices"
	"sync"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// maxRecent is how many dead letters a processor remembers.
const maxRecent = 20

// DeadLetter describes a record that was set aside, without its content.
type DeadLetter struct {
	Partition state.Partition
	Offset    int64
	Timestamp int64 // of the record, in milliseconds
	Reason    record.Reason
	Stream    string // empty if no stream was found for it
	Path      string // in the record, with dots; empty for the whole record
}

// recent holds the last dead letters, oldest first.
type recent struct {
	mu      sync.Mutex
	letters []DeadLetter
}

// add records the dead letters of a batch that was applied.
func (r *recent) add(b *workerBatch) {
	if len(b.dead) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range b.dead {
		if !d.due || b.Ranges[d.rangeIndex].Behind {
			continue // it was written before, or is read and written again
		}
		r.letters = append(r.letters, DeadLetter{
			Partition: b.partitions[d.rangeIndex].Partition, Offset: d.offset, Timestamp: d.timestamp,
			Reason: d.reason, Stream: d.stream, Path: d.path,
		})
	}
	if more := len(r.letters) - maxRecent; more > 0 {
		r.letters = slices.Delete(r.letters, 0, more)
	}
}

// DeadLetters returns the last records that this processor has set aside, latest first.
func (p *Processor) DeadLetters() []DeadLetter {
	r := &p.stats.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	letters := slices.Clone(r.letters)
	slices.Reverse(letters)
	return letters
}
