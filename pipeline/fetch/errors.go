package fetch

import (
	"errors"
	"fmt"

	"github.com/weir-stream/weir/state"
)

var (
	// errClosed is returned by Poll after Close.
	errClosed = errors.New("fetch: the poller is closed")

	// errTooLarge is the reason of a CorruptError when a batch would inflate to more than Decoder.maxInflatedBytes.
	errTooLarge = errors.New("the batch inflates to more than the limit")

	// errMagic is the reason of a CorruptError when the log holds a message format other than record batch v2.
	errMagic = errors.New("unsupported message format")

	// ErrChecksum is the reason of a CorruptError when the CRC-32C of a batch is not the one in its header.
	ErrChecksum = errors.New("checksum mismatch")
)

// CorruptError says that a batch cannot be decoded, and where it is. No record at or after Offset was delivered, so
// fetching again from Offset loses nothing.
type CorruptError struct {
	Topic     string
	Partition int32
	// Offset is the first offset that was not delivered.
	Offset int64
	// EndOffset is the first offset after the broken batch: seek there to skip the batch. It comes from the batch's
	// header, but is never beyond the following batch or the high watermark, because the header itself may be broken.
	// It is -1 if unknown.
	EndOffset int64
	// Timestamp is the greatest of the batch's records by its header, in ms; 0 if that cannot be
	// read.
	Timestamp int64
	// Reason is ErrChecksum, or says what is malformed, or which format or limit the batch violates.
	Reason error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("fetch: cannot decode %s/%d from offset %d: %v", e.Topic, e.Partition, e.Offset, e.Reason)
}

func (e *CorruptError) Unwrap() error { return e.Reason }

// Damaged reports whether something has changed the batch since it was written, such as a disk: its checksum is wrong, or
// it cannot be where it is. Otherwise it was written like that.
func (e *CorruptError) Damaged() bool {
	_, misplaced := errors.AsType[*misplacedError](e.Reason)
	return misplaced || errors.Is(e, ErrChecksum)
}

// NewestIn returns a timestamp, in ms, that none of the batch's records exceeds, as far as its header can be believed; else the
// given present.
func (e *CorruptError) NewestIn(now int64) int64 {
	if e.Timestamp <= 0 || e.Damaged() { // that may be what is damaged
		return now
	}
	return e.Timestamp
}

// damagedTries is how often a damaged batch is fetched before it is given up.
const damagedTries = 3

// FetchAgain reports whether to fetch the batch again, after a number of consecutive failures to decode it: if it is
// damaged, a single read may have failed, or a replica may be replaced.
func (e *CorruptError) FetchAgain(failures int) bool {
	return failures < damagedTries && e.Damaged()
}

// OffsetOutOfRangeError says that a fetch position is outside the log. The partition is fetched no further until Seek
// gives it a position, or Remove takes it away.
type OffsetOutOfRangeError struct {
	Topic     string
	Partition int32
	Offset    int64 // the position that was asked for
	LogStart  int64 // the first offset still in the log
	LogEnd    int64 // the offset after the last replicated record
}

func (e *OffsetOutOfRangeError) Error() string {
	return fmt.Sprintf("fetch: offset %d of %s/%d is outside the log, which holds [%d, %d)",
		e.Offset, e.Topic, e.Partition, e.LogStart, e.LogEnd)
}

// divergedError says that the log no longer holds the record before a position, and has others instead: it was
// truncated, for example by the election of a leader that lacked the record. The partition is not fetched until it is
// added again.
type divergedError struct {
	Topic     string
	Partition int32
	Offset    int64 // the position, or up to where the partition is applied
	Epoch     int32 // of the leader that wrote the record before it, or a later one
	// End is where the part of the log that the leader shares ends, and EndEpoch the epoch there.
	End      int64
	EndEpoch int32
}

func (e *divergedError) Error() string {
	return fmt.Sprintf("fetch: %s/%d diverges from offset %d in epoch %d: the log was truncated to offset %d of epoch %d",
		e.Topic, e.Partition, e.Offset, e.Epoch, e.End, e.EndEpoch)
}

// OtherLogError says that a topic is no longer the log that a position belongs to. The partition is
// not fetched until it is added again.
type OtherLogError struct {
	Topic     string
	Partition int32
	Was, Is   state.LogID
}

func (e *OtherLogError) Error() string {
	return fmt.Sprintf("fetch: %s/%d is another log: %v, and was %v", e.Topic, e.Partition, e.Is, e.Was)
}

// PositionError is an error of Poll about the position of one partition, which must be determined
// again: an *OffsetOutOfRangeError, a *divergedError or an *OtherLogError.
type PositionError interface {
	error
	Of() state.Partition
}

// Of returns the partition.
func (e *OffsetOutOfRangeError) Of() state.Partition {
	return state.Partition{Topic: e.Topic, ID: e.Partition}
}

// Of returns the partition.
func (e *divergedError) Of() state.Partition { return state.Partition{Topic: e.Topic, ID: e.Partition} }

// Of returns the partition.
func (e *OtherLogError) Of() state.Partition { return state.Partition{Topic: e.Topic, ID: e.Partition} }
