package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go/compress"
)

// defaultMaxInflatedBytes is the limit of a Decoder that sets none.
const defaultMaxInflatedBytes = 64 << 20

// Decoder iterates over the records of one fetched partition after another. The zero value is ready for Reset. It
// allocates nothing per record, and is not safe for concurrent use.
type Decoder struct {
	// maxInflatedBytes limits what a single compressed batch may inflate to, and the window that zstd may ask for (only
	// its level 22 asks for more than 64 MiB); 0 means 64 MiB. It is read by the first Reset.
	maxInflatedBytes int

	part *PartitionData
	rest []byte // the batches not yet begun
	next int64
	at   sequence
	err  error

	// The batch being read.
	batch   recordBatch
	inside  bool
	records []byte // not yet read, inflated
	left    int32  // how many records that is
	delta   int64  // the offset delta of the last record read

	aborted  []abortedTransaction // by first offset
	reached  int                  // how many of them the batches so far have come to
	aborting map[int64]struct{}   // producers inside an aborted transaction
	inflater inflater
}

// Reset starts on p. The memory of the previous partition's records is reused.
func (d *Decoder) Reset(p *PartitionData) {
	if d.inflater.limit == 0 {
		d.inflater.limit = defaultMaxInflatedBytes
		if d.maxInflatedBytes > 0 {
			d.inflater.limit = d.maxInflatedBytes
		}
		d.aborting = make(map[int64]struct{})
	}
	d.inflater.reset()
	d.part, d.rest, d.next, d.err = p, p.records, p.Offset, nil
	d.at = sequenceOf(p)
	d.inside, d.records, d.left = false, nil, 0
	clear(d.aborting)
	d.aborted, d.reached = d.aborted[:0], 0
	if p.Isolation == ReadCommitted {
		d.aborted = append(d.aborted, p.aborted...)
		slices.SortFunc(d.aborted, func(a, b abortedTransaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	}
}

// NextOffset returns where to continue: the offset after the last record returned. Once Next has returned false, it is
// also after everything that is not for the caller: control batches, aborted records, empty batches, and what
// compaction removed from the end of a batch. It never moves backwards. After an error it is CorruptError.Offset.
func (d *Decoder) NextOffset() int64 { return d.next }

// Absent returns how many offsets the partition's data lacks so far, between the one asked for and the last batch read:
// no batch has them. Compaction removes batches; in the log of any other topic a damaged header hides what they had.
func (d *Decoder) Absent() int64 { return d.at.absent }

// Next reads the next record into r. It returns false at the end of the partition's data; a cut batch at the end is
// left to the next fetch. Its error is a *CorruptError, and stays.
func (d *Decoder) Next(r *Record) (bool, error) {
	if d.err != nil {
		return false, d.err
	}
	for {
		for d.left > 0 {
			if err := d.read(r); err != nil {
				return false, d.fail(err)
			}
			if r.Offset >= d.next {
				d.next = r.Offset + 1
				return true, nil
			}
		}
		if d.inside {
			if len(d.records) != 0 {
				return false, d.fail(fmt.Errorf("%d bytes are left over after the %d records of a batch",
					len(d.records), d.batch.records))
			}
			d.pass()
		}
		b, whole, err := parseRecordBatch(d.rest)
		if err != nil {
			d.inside = false
			return false, d.fail(err)
		}
		if !whole {
			d.rest = nil
			return false, nil
		}
		d.rest = d.rest[b.size:]
		d.batch, d.inside = b, true
		if err := d.open(); err != nil {
			return false, d.fail(err)
		}
	}
}

// open starts on d.batch. It leaves no records to read if none of them are for the caller.
func (d *Decoder) open() error {
	b := &d.batch
	d.records, d.left, d.delta = nil, 0, -1
	if err := b.verify(); err != nil {
		return err
	}
	if err := d.at.place(b, d.rest); err != nil {
		return err
	}
	for d.reached < len(d.aborted) && d.aborted[d.reached].FirstOffset <= b.last {
		d.aborting[d.aborted[d.reached].ProducerID] = struct{}{}
		d.reached++
	}
	_, aborting := d.aborting[b.producerID]
	if b.has(attrControl) {
		if !aborting {
			return nil
		}
		end, err := b.abortsTransaction()
		if end {
			delete(d.aborting, b.producerID)
		}
		return err
	}
	if aborting && b.has(attrTransactional) {
		return nil
	}
	if b.last < d.next {
		return nil
	}
	if b.records == 0 && len(b.payload) == 0 {
		return nil // compaction keeps the last batch of a producer even if all its records are gone
	}
	d.left, d.records = b.records, b.payload
	if codec := compress.Compression(b.attributes & attrCodec); codec != compress.None {
		var err error
		d.records, err = d.inflater.inflate(codec, b.payload)
		return err
	}
	return nil
}

var errOrder = errors.New("record: the offset is not after the one before it, or not within its batch")

// read takes one record from the batch.
func (d *Decoder) read(r *Record) error {
	rest, err := parseRecord(d.records, r)
	if err != nil {
		return err
	}
	b := &d.batch
	if r.Offset <= d.delta || r.Offset > b.last-b.base {
		return errOrder
	}
	d.delta = r.Offset
	r.Offset += b.base
	if b.has(attrLogAppendTime) {
		r.Timestamp = b.maxTimestamp
	} else {
		r.Timestamp += b.baseTimestamp
	}
	d.records = rest
	d.left--
	return nil
}

// pass skips the rest of the batch.
func (d *Decoder) pass() {
	d.next = max(d.next, d.batch.last+1)
	d.inside, d.left = false, 0
}

// fail ends the decoder with err, found in the current batch or in the header that follows.
func (d *Decoder) fail(err error) error {
	e := &CorruptError{Topic: d.part.Topic, Partition: d.part.Partition, Offset: d.next, EndOffset: -1, Reason: err}
	if d.inside {
		e.EndOffset, e.Timestamp = d.end(err), d.batch.maxTimestamp
	}
	d.err = e
	return e
}

// end returns the offset after the current batch, -1 if unknown. The checksum does not cover the base offset of the
// following batch, but its position depends on the length alone.
func (d *Decoder) end(err error) int64 {
	end := d.batch.last + 1
	if misplaced, is := errors.AsType[*misplacedError](err); is {
		end = misplaced.end
	} else if following, seen := baseOf(d.rest); seen && following > d.batch.base {
		end = min(end, following)
	}
	if d.part.highWatermark > 0 {
		end = min(end, d.part.highWatermark)
	}
	if end < d.next {
		return -1
	}
	return end
}
