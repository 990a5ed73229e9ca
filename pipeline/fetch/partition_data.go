package fetch

import (
	"sync"
	"sync/atomic"

	"github.com/weir-stream/weir/state"
)

// Isolation tells whether the records of open and aborted transactions are read. Its values are the protocol's, except
// the zero value, which is ReadCommitted.
type Isolation int8

// The isolation levels.
const (
	ReadCommitted   Isolation = iota // only what is committed, up to the last stable offset
	ReadUncommitted                  // everything up to the high watermark
)

func (i Isolation) protocol() int8 {
	if i == ReadCommitted {
		return 1
	}
	return 0
}

// abortedTransaction marks the transactional records of a producer, from FirstOffset to its next ABORT marker, as
// aborted.
type abortedTransaction struct {
	ProducerID  int64
	FirstOffset int64
}

// PartitionData is the result of one fetch for one partition.
type PartitionData struct {
	Topic       string
	Partition   int32
	leaderEpoch int32 // the epoch of the leader that was asked, -1 if unknown
	Offset      int64 // the requested offset; records before it are skipped
	Isolation   Isolation

	aligned   bool            // see sequence
	misplaced *misplacedError // what was wrong with the answer before

	highWatermark    int64 // the offset after the last replicated record
	lastStableOffset int64 // the offset of the first record of the oldest open transaction, or highWatermark
	logStartOffset   int64 // the first offset still in the log

	LastEpoch int32 // the leader epoch of the last record, or of that before Offset; -1 if unknown

	records []byte // record batches as the broker sent them; the last may be cut
	aborted []abortedTransaction

	pos        *position
	generation uint64
	response   *response
	err        error
}

func (p *PartitionData) key() state.Partition {
	return state.Partition{Topic: p.Topic, ID: p.Partition}
}

func endOffset(i Isolation, highWatermark, lastStable int64) int64 {
	if i == ReadCommitted {
		return lastStable
	}
	return highWatermark
}

// Release returns the partition's memory for later fetches; records, and anything that points into them, must not be
// used afterwards. Calling it is optional.
func (p *PartitionData) Release() {
	r := p.response
	p.response, p.records = nil, nil
	if r != nil {
		r.release()
	}
}

// response is a fetch response that several PartitionData share.
type response struct {
	body    *[]byte
	leader  *leader
	users   atomic.Int32 // PartitionData not yet released
	queued  int          // PartitionData not yet taken by Poll; under the poller's lock
	records int64        // offsets that it has
}

var bodies = sync.Pool{New: func() any { return new([]byte) }}

func (r *response) release() {
	if r.users.Add(-1) == 0 {
		bodies.Put(r.body)
	}
}
