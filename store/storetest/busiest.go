package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// testBusiest checks that the last publication of each processor is read by all.
func testBusiest(t *testing.T, s store.Store) {
	ctx := context.Background()
	expect := func(what string, want ...state.Busiest) {
		t.Helper()
		got, err := s.Busiest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b state.Busiest) int { return int(a.Since - b.Since) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	publish := func(processor string, since, events int64) state.Busiest {
		t.Helper()
		b := state.Busiest{Since: since, Keys: []state.BusiestKey{
			{Key: "device", Rest: 3, Entities: []state.BusyEntity{{Entity: `d"1|`, Events: events, Error: 2}, {Entity: "d2", Events: 5}}},
			{Key: "user", Entities: []state.BusyEntity{}},
		}}
		if err := s.PublishBusiest(ctx, processor, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	expect("nothing was published")
	publish("a", 1, 7)
	other := publish("b", 2, 10)
	expect("two processors, one of which published again", publish("a", 1, 8), other)
}

// testBusiestForgotten checks that what a processor published is forgotten unless it publishes again.
func testBusiestForgotten(t *testing.T, s Timed) {
	publish := func(processor string) {
		t.Helper()
		b := state.Busiest{Since: 1, Keys: []state.BusiestKey{{Key: processor, Entities: []state.BusyEntity{}}}}
		if err := s.PublishBusiest(t.Context(), processor, b); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, want ...string) {
		t.Helper()
		list, err := s.Busiest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range list {
			got = append(got, b.Keys[0].Key)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v are busiest, want %v", what, got, want)
		}
	}
	publish("a")
	s.Pass(state.BusiestFor / 2)
	publish("b")
	expect("two processors", "a", "b")
	s.Pass(state.BusiestFor/2 + time.Second)
	publish("b")
	expect("one that goes on", "b")
	s.Pass(state.BusiestFor + time.Second)
	expect("none")
}
