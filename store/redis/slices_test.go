package redisstore

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// Calls of a long batch combine the mutations of all of its events, and stay short.
func TestLongBatchesCombine(t *testing.T) {
	t.Parallel()
	client := redistest.Shared(t).Client(t)
	s := newStore(t, client, 2, CallMutations(40))
	start(t, s, transactions)
	b := begin(t, s, transactions)
	b.Series = allSeries
	for offset := range int64(600) {
		b.Update(0, offset, fmt.Appendf(nil, "d%d", offset%60))
		b.Add(state.Mutation{Series: events, Tile: 101, Num: 1})
		b.Ranges[0].To = offset + 1
	}
	apply(t, s.newWriter(), b)
	if b.Calls != 2 { // 30 mutations in each shard
		t.Errorf("600 events of 60 devices took %d calls of 40 mutations, want one for each of 2 shards", b.Calls)
	}
}

// The mutations of an event go together, however many entities of a shard it changes: a position cannot divide them.
func TestEventsAreNotDivided(t *testing.T) {
	t.Parallel()
	client := redistest.Shared(t).Client(t)
	s := newStore(t, client, 1, CallMutations(1))
	start(t, s, transactions)
	b := begin(t, s, transactions)
	b.Series = allSeries
	const devices = 5
	for offset := range int64(2) {
		for device := range devices {
			b.Update(0, offset, fmt.Appendf(nil, "d%d", device))
			b.Add(state.Mutation{Series: events, Tile: 101 + offset, Num: 1})
		}
		b.Ranges[0].To = offset + 1
	}
	apply(t, s.newWriter(), b)
	for device := range devices {
		states, err := s.Read(t.Context(), []state.Read{{Series: events, Entity: fmt.Sprint("d", device), First: 101, Last: 102}})
		if err != nil {
			t.Fatal(err)
		}
		if got := states[0].Buckets; len(got) != 2 {
			t.Errorf("d%d has the buckets %v, want those of 2 events", device, got)
		}
	}
}
