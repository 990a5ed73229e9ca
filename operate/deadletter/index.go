package deadletter

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/backfill"
)

// index is the content of the dead-letter topic, without the original records.
type index struct {
	topic   *Topic
	letters []*Letter // those that the filter selects, by when they were set aside
	// copies maps events to the IDs of all their letters, also of letters that the filter does not select.
	copies map[event][]RecordID
	// receipts maps events, and partitions of the dead-letter topic, to the offset of the last receipt.
	receipts map[event]map[int32]int64
	// skipped lists what fills of the namespace have skipped.
	skipped []*backfill.Skipped
}

// newIndex reads the topic.
func newIndex(ctx context.Context, topic *Topic, filter *Filter) (*index, error) {
	x := emptyIndex(topic)
	err := topic.read(ctx, func(at RecordID, rec *record.Record) error {
		x.add(at, rec, filter, false)
		return nil
	})
	if err != nil {
		return nil, err
	}
	x.finish()
	return x, nil
}

func emptyIndex(topic *Topic) *index {
	return &index{topic: topic, copies: map[event][]RecordID{}, receipts: map[event]map[int32]int64{}}
}

// add adds a record of the topic. It returns the letter if the filter selects it, and fills it if it is to be whole.
// Without a seal that proves it, a record neither says what was replayed or skipped, nor is it a copy of another letter.
func (x *index) add(at RecordID, rec *record.Record, filter *Filter, whole bool) {
	ours, others := x.topic.unseal(rec)
	if _, ok := ours.Last(backfill.HeaderSkipped); ok {
		var s backfill.Skipped
		if json.Unmarshal(rec.Value, &s) == nil && s.Namespace == x.topic.Namespace {
			x.skipped = append(x.skipped, &s)
		}
		return
	}
	letter, receipt := parse(at, rec, ours)
	switch {
	case letter == nil && receipt.Topic == "": // another program has written it
	case letter == nil:
		if x.receipts[receipt] == nil {
			x.receipts[receipt] = map[int32]int64{}
		}
		x.receipts[receipt][at.Partition] = max(x.receipts[receipt][at.Partition], at.Offset)
	default:
		if letter.Sealed {
			x.copies[letter.event()] = append(x.copies[letter.event()], at)
		}
		if filter.matches(letter) {
			x.letters = append(x.letters, letter)
			if whole {
				letter.fill(rec, others)
			}
		}
	}
}

// finish marks the letters that have receipts, and sorts all.
func (x *index) finish() {
	for _, l := range x.letters {
		l.Replayed = l.Sealed && x.receipts[l.event()] != nil
	}
	slices.SortFunc(x.letters, func(a, b *Letter) int {
		return cmp.Or(cmp.Compare(a.SetAside, b.SetAside), cmp.Compare(a.At.Partition, b.At.Partition),
			cmp.Compare(a.At.Offset, b.At.Offset))
	})
}

// uncovered returns the partitions with letters of an event that no receipt follows.
func (x *index) uncovered(of event) (partitions []int32) {
	for _, at := range x.copies[of] {
		receipt, ok := x.receipts[of][at.Partition]
		if (!ok || receipt < at.Offset) && !slices.Contains(partitions, at.Partition) {
			partitions = append(partitions, at.Partition)
		}
	}
	return partitions
}

// List lists the letters that a filter selects, by when they were set aside, without the original
// records.
func List(ctx context.Context, topic *Topic, filter *Filter) ([]*Letter, error) {
	if err := filter.Check(); err != nil {
		return nil, err
	}
	x, err := newIndex(ctx, topic, filter)
	if err != nil {
		return nil, err
	}
	return x.letters, nil
}

// Find reads the letters with an ID, which is their own or their source's, with the original records.
func Find(ctx context.Context, topic *Topic, id RecordID) ([]*Letter, error) {
	x, err := newIndex(ctx, topic, &Filter{IDs: []RecordID{id}})
	if err != nil || len(x.letters) == 0 {
		return nil, err
	}
	wanted := map[RecordID]*Letter{}
	for _, l := range x.letters {
		wanted[l.At] = l
	}
	err = topic.read(ctx, func(at RecordID, rec *record.Record) error {
		if l := wanted[at]; l != nil {
			_, others := topic.unseal(rec)
			l.fill(rec, others)
		}
		return nil
	})
	return x.letters, err
}
