package features_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const rememberingDefinitions = `
streams:
  transaction:
    topic: events
    timestamp: timestamp
    id: event_id
    remember_ids: 10m
    fields: {user_id: string, device_id: string, amount: decimal}
features:
  user_tx_1d: COUNT(1d, transaction, user_id, where='amount > 5')
  user_tx: COUNT(lifetime, transaction, user_id)
  device_tx: COUNT(lifetime, transaction, device_id)
  pair_last_7d: LAST(7d, transaction, amount, user_id, device_id, where='amount > 100')
`

// Each entity that an event changes remembers the event's ID, with its record's time.
func TestMapRemembersIDs(t *testing.T) {
	m := defined.Registry(t, rememberingDefinitions).NewMapper()
	id := func(text string) string {
		return fmt.Sprintf("3@42 %%s id() tile 1700000000 num 0 member %q", text)
	}
	for value, want := range map[string][]string{
		`{"event_id":"t1","timestamp":1699999996000,"user_id":"u","device_id":"d","amount":7}`: {
			`3@42 d count() tile 0 num 1 member ""`, fmt.Sprintf(id("t1"), "d"),
			`3@42 u count() tile 0 num 1 member ""`, `3@42 u count() tile 472222 where amount > 5 num 1 member ""`, fmt.Sprintf(id("t1"), "u"),
		},
		`{"event_id":17,"timestamp":NOW,"user_id":"u"}`: {
			`3@42 u count() tile 0 num 1 member ""`, fmt.Sprintf(id("17"), "u"),
		},
		`{"event_id":null,"timestamp":NOW,"user_id":"u"}`: {`3@42 u count() tile 0 num 1 member ""`},
		`{"event_id":"t1","timestamp":NOW}`:               nil,
	} {
		b := &state.Batch{}
		mustMap(t, m, event(value), b)
		equalLines(t, mutations(b), want)
	}
}

// Event IDs are in the same group as everything else of their entity.
func TestSeriesOfIDs(t *testing.T) {
	r := defined.Registry(t, rememberingDefinitions)
	var ids []cost.Series
	explained := cost.Explain(r)
	for _, s := range explained.Series {
		if s.Measure == "id" {
			ids = append(ids, s)
		}
	}
	recent, ever := defined.Feature(t, r, "user_tx_1d").Series[0], defined.Feature(t, r, "user_tx").Series[0]
	if len(ids) != 3 || ids[1].Group != recent.Group || ids[1].Group != ever.Group {
		t.Fatalf("%+v", ids)
	}
	if diff := cmp.Diff(cost.Series{
		ID: ids[1].ID, Group: recent.Group, Stream: "transaction", By: []string{"user_id"}, Measure: "id", State: "dedup set",
		Tile: "1s", Keep: "10m", Max: 1000, Limit: "newest 1000", Features: []string{},
	}, ids[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := explained.Streams[0].Mutations; got != 3+1+3 {
		t.Errorf("%d mutations", got)
	}
	// A device has one key, with a lifetime feature and the event IDs.
	if got, want := explained.Entities[0].BytesFull, int64(150+2*8+5+1000*10); got != want {
		t.Errorf("a device takes %d bytes, want %d", got, want)
	}
	for _, s := range r.Series {
		if s.Measure == state.RememberID && s.By[0] == "device_id" && len(s.By) == 1 && s.GroupKeep != 0 {
			t.Errorf("the key of a device's event IDs and its lifetime is kept for %d", s.GroupKeep)
		}
	}
}

// A plan without dedup sets lacks something that the definitions need.
func TestPlanHasIDs(t *testing.T) {
	with, without := defined.Registry(t, rememberingDefinitions).Plan(), defined.Registry(t, strings.Replace(rememberingDefinitions, "remember_ids: 10m", "", 1)).Plan()
	if without.Covers(with) || !with.Covers(without) || with.Version == without.Version {
		t.Errorf("with ids %+v, without %+v", with, without)
	}
}

// A fill of IDs remembers those of all events that count in some series of the entity, whether or not it fills that series, and
// serves the features of these entities.
func TestFillsRememberIDs(t *testing.T) {
	r := defined.Registry(t, rememberingDefinitions)
	recent := defined.Feature(t, r, "user_tx_1d").Series[0]
	id := func(text string) string { return fmt.Sprintf("3@42 u id() tile 1700000000 num 0 member %q", text) }
	for name, c := range map[string]struct {
		also *state.Series
		want []string // of the first event, of amount 7
	}{
		"IDs alone":        {nil, []string{id("t1")}},
		"also of a window": {recent, []string{`3@42 u count() tile 472222 where amount > 5 num 1 member ""`, id("t1")}},
	} {
		some := map[*state.Series]bool{}
		for _, s := range r.Series {
			some[s] = s.Measure == state.RememberID && s.By[0] == "user_id" && len(s.By) == 1 || s == c.also
		}
		f := r.FillOf(some)
		if got, want := r.FilledBy(f), []string{"user_tx", "user_tx_1d"}; !slices.Equal(got, want) {
			t.Errorf("%s: filled for %q, want %q", name, got, want)
		}
		m := r.NewFillMapper(f)
		for value, want := range map[string][]string{
			`{"event_id":"t1","timestamp":1699999996000,"user_id":"u","device_id":"d","amount":7}`: c.want,
			`{"event_id":"t2","timestamp":NOW,"user_id":"u","amount":1}`:                           {id("t2")},
			`{"event_id":null,"timestamp":NOW,"user_id":"u","amount":1}`:                           nil,
			`{"event_id":"t3","timestamp":NOW,"device_id":"d"}`:                                    nil,
		} {
			b := &state.Batch{}
			mustMap(t, m, event(value), b)
			equalLines(t, mutations(b), want)
		}
	}
}

// An ID at another path is another ID, though it may have the same text: what is remembered of one says nothing about it.
func TestIDsOfAnotherPath(t *testing.T) {
	before := defined.Registry(t, rememberingDefinitions)
	after := defined.Registry(t, strings.Replace(rememberingDefinitions, "id: event_id", "id: order_id", 1))
	known := map[string]bool{}
	for _, s := range before.Series {
		known[s.ID] = true
	}
	for _, s := range after.Series {
		if isID := s.Measure == state.RememberID; known[s.ID] == isID {
			t.Errorf("the series of %s by %v is the same: %v", s.Measure, s.By, known[s.ID])
		}
	}
	if before.Plan().Covers(after.Plan()) {
		t.Error("nothing is filled after the ID's path has changed")
	}
}

// With several topics, what counts is where each has its ID, not their order.
func TestIDsOfSeveralTopics(t *testing.T) {
	ids := func(topics string) (list []string) {
		for _, s := range defined.Registry(t, strings.Replace(rememberingDefinitions, "topic: events", "topics: "+topics, 1)).Series {
			if s.Measure == state.RememberID {
				list = append(list, s.ID)
			}
		}
		return list
	}
	one := ids("[events]")
	for topics, same := range map[string]bool{
		"[other]":                              true, // a stream may be read from elsewhere
		"[events, other]":                      true,
		"{events: {}, other: {id: order_id}}":  false,
		"{events: {id: order_id}, other: {}}":  false,
		"{other: {id: order_id}, events: {}}":  false,
		"{events: {id: order_id}, second: {}}": false,
	} {
		if got := slices.Equal(ids(topics), one); got != same {
			t.Errorf("%s: the IDs are those of one topic: %v, want %v", topics, got, same)
		}
	}
	if a, b := ids("{events: {}, other: {id: order_id}}"), ids("{other: {id: order_id}, events: {}}"); !slices.Equal(a, b) {
		t.Error("in another order, topics have other IDs")
	}
	if a, b := ids("{events: {}, other: {id: order_id}}"), ids("{events: {id: order_id}, other: {}}"); slices.Equal(a, b) {
		t.Error("topics whose IDs were swapped have the same IDs")
	}
}
