package fetch

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/weir-stream/weir/state"
)

// ByTopic groups the partitions of a request by topic, as the protocol requires.
type ByTopic[T any] struct {
	Topics []T
	at     map[string]int
}

// Of returns the topic's part of the request, made by create the first time.
func (b *ByTopic[T]) Of(topic string, create func() T) *T {
	i, ok := b.at[topic]
	if !ok {
		if b.at == nil {
			b.at = make(map[string]int)
		}
		i = len(b.Topics)
		b.at[topic] = i
		b.Topics = append(b.Topics, create())
	}
	return &b.Topics[i]
}

// ask is a request to a broker about some partitions, each of which is answered or fails.
type ask struct {
	what    string // what is asked for, in errors
	broker  int32
	waiting map[state.Partition]int // index of the caller's item
	fail    func(item int, err error)
}

// answered returns the item of a partition in the response. ok is false if no item waits for it, or if the answer is an
// error, which fails the item.
func (a *ask) answered(topic string, partition int32, code int16) (item int, ok bool) {
	id := state.Partition{Topic: topic, ID: partition}
	if item, ok = a.waiting[id]; !ok {
		return 0, false
	}
	delete(a.waiting, id)
	if err := kerror(code); err != nil {
		a.fail(item, fmt.Errorf("fetch: %s of %v: %w", a.what, id, err))
		return 0, false
	}
	return item, true
}

// end fails the items that were not answered: with the error of the request, or as left out of the
// response if that is nil.
func (a *ask) end(err error) {
	err = cmp.Or(err, errLeftOut)
	for id, item := range a.waiting {
		a.fail(item, fmt.Errorf("fetch: %s of %v: broker %d: %w", a.what, id, a.broker, err))
	}
}

var errLeftOut = errors.New("left them out")
