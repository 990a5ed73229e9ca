package fetch

import (
	"sync"
	"sync/atomic"
)

// Isolation says whether the records of open and aborted transactions are read. Its values are the protocol's, but
// for the zero value, which is ReadCommitted.
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

// abortedTransaction says that the transactional records of a producer, from FirstOffset to its next ABORT marker,
// do not count.
type abortedTransaction struct {
	ProducerID  int64
	FirstOffset int64
}

// Partition is what one fetch brought for one partition.
type Partition struct {
	Topic       string
	Partition   int32
	LeaderEpoch int32 // the epoch of the leader that was asked, -1 if unknown
	Offset      int64 // what was asked for; records before it are passed over
	Isolation   Isolation

	HighWatermark    int64 // the offset after the last replicated record
	LastStableOffset int64 // the offset of the first record of the oldest open transaction, or HighWatermark
	LogStartOffset   int64 // the first offset still in the log

	LastEpoch int32 // the leader epoch of the last record, or of that before Offset; -1 if unknown

	Records []byte // record batches as the broker sent them; the last may be cut
	Aborted []abortedTransaction

	pos        *position
	generation uint64
	response   *response
	err        error
}

func (p *Partition) key() topicPartition { return topicPartition{p.Topic, p.Partition} }

// EndOffset is the offset up to which records can be read at the partition's isolation: the last stable offset, or
// the high watermark.
func (p *Partition) EndOffset() int64 {
	return endOffset(p.Isolation, p.HighWatermark, p.LastStableOffset)
}

func endOffset(i Isolation, highWatermark, lastStable int64) int64 {
	if i == ReadCommitted {
		return lastStable
	}
	return highWatermark
}

// Release gives the partition's memory back for later fetches, after which neither Records nor anything that points
// into it may be used. Calling it is optional.
func (p *Partition) Release() {
	r := p.response
	p.response, p.Records = nil, nil
	if r != nil {
		r.release()
	}
}

// response is a fetch response that several Partitions share.
type response struct {
	body   *[]byte
	leader *leader
	users  atomic.Int32 // Partitions not yet released
	queued int          // Partitions not yet taken by Poll; under the poller's lock
}

var bodies = sync.Pool{New: func() any { return new([]byte) }}

func (r *response) release() {
	if r.users.Add(-1) == 0 {
		bodies.Put(r.body)
	}
}
