package fetch

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/weir-stream/weir/state"
)

// ByTopic gathers what a request says of partitions under their topics, as the protocol has it.
type ByTopic[T any] struct {
	Topics []T
	at     map[string]int
}

// Of is the topic's part of the request, made by create where it is the first time.
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
	what    string // is asked for, in errors
	broker  int32
	waiting map[state.Partition]int // which of the caller's items it is
	fail    func(item int, err error)
}

// answered is whose answer came, by its partition. It is not ok where nobody waits for it, or
// where the answer is an error, by which the item fails.
func (a *ask) answered(topic string, partition int32, code int16) (item int, ok bool) {
	id := state.Partition{Topic: topic, ID: partition}
	if item, ok = a.waiting[id]; !ok {
		return 0, false
	}
	delete(a.waiting, id)
	if err := kerror(code); err != nil {
		a.fail(item, fmt.Errorf("fetch: %s of %s/%d: %w", a.what, topic, partition, err))
		return 0, false
	}
	return item, true
}

// end has the items fail that were not answered: by the error of the request, nil where the
// response leaves them out.
func (a *ask) end(err error) {
	err = cmp.Or(err, errLeftOut)
	for id, item := range a.waiting {
		a.fail(item, fmt.Errorf("fetch: %s of %s/%d: broker %d: %w", a.what, id.Topic, id.ID, a.broker, err))
	}
}

var errLeftOut = errors.New("left them out")
