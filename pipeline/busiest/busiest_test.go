package busiest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/state"
)

var (
	byDevice = &state.Series{By: []string{"device"}}
	byUser   = &state.Series{By: []string{"user"}}
	byBoth   = &state.Series{By: []string{"user", "device"}}
)

// clock is a time that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// start is the beginning of a pane.
var start = time.UnixMilli(0).Add(1000 * pane)

// count counts an event of each entity of a series.
func count(c *Counter, series *state.Series, entities ...string) {
	b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	for _, e := range entities {
		b.Update(0, 0, []byte(e))
		b.Add(state.Mutation{Series: series})
	}
	c.Count(b)
}

// want compares the published counts of a key.
func want(t *testing.T, what string, got state.Busiest, key string, entities ...state.BusyEntity) {
	t.Helper()
	for _, k := range got.Keys {
		if k.Key == key {
			if !slices.Equal(k.Entities, entities) {
				t.Errorf("%s: key %s: entities %v, want %v", what, key, k.Entities, entities)
			}
			return
		}
	}
	if len(entities) > 0 {
		t.Errorf("%s: key %s is missing from %+v", what, key, got)
	}
}

// Few entities are counted exactly, by the field that names them, and pairs are not counted.
func TestFewEntities(t *testing.T) {
	c := New((&clock{start}).now)
	count(c, byDevice, "d1", "d2", "d2", "d3", "d2", "d3")
	count(c, byUser, "u1", "u1")
	count(c, byBoth, "u1|d1")
	got := c.Busiest()
	want(t, "few", got, "device", state.BusyEntity{Entity: "d2", Events: 3}, state.BusyEntity{Entity: "d3", Events: 2}, state.BusyEntity{Entity: "d1", Events: 1})
	want(t, "few", got, "user", state.BusyEntity{Entity: "u1", Events: 2})
	if len(got.Keys) != 2 || got.Keys[0].Rest != 0 || got.Since != start.UnixMilli() {
		t.Errorf("got %+v, want two keys, with all events since %d", got, start.UnixMilli())
	}
}

// Records that are read again because they were not applied count once.
func TestRecordsReadAgainCountOnce(t *testing.T) {
	c := New((&clock{start}).now)
	b := &state.Batch{Ranges: []state.PartitionRange{{Behind: true}, {}}}
	for i := range 3 {
		b.Update(min(i, 1), 0, []byte("d1"))
		b.Add(state.Mutation{Series: byDevice})
	}
	c.Count(b)
	want(t, "of two ranges", c.Busiest(), "device", state.BusyEntity{Entity: "d1", Events: 2})
}

// The current pane and the one before count.
func TestPanes(t *testing.T) {
	at := &clock{start.Add(pane / 2)}
	c := New(at.now)
	count(c, byDevice, "d1")
	at.at = start.Add(pane)
	count(c, byDevice, "d1", "d2")
	got := c.Busiest()
	want(t, "the next pane", got, "device", state.BusyEntity{Entity: "d1", Events: 2}, state.BusyEntity{Entity: "d2", Events: 1})
	if began := start.Add(pane / 2).UnixMilli(); got.Since != began {
		t.Errorf("since %d, want %d, when the counter began", got.Since, began)
	}
	at.at = start.Add(2 * pane)
	got = c.Busiest()
	want(t, "the one after", got, "device", state.BusyEntity{Entity: "d1", Events: 1}, state.BusyEntity{Entity: "d2", Events: 1})
	if since := start.Add(pane).UnixMilli(); got.Since != since {
		t.Errorf("since %d, want %d", got.Since, since)
	}
	at.at = start.Add(3 * pane)
	want(t, "without events for two panes", c.Busiest(), "device")
	count(c, byDevice, "d3")
	at.at = start.Add(9 * pane)
	want(t, "after a long pause", c.Busiest(), "device")
}

// For any events, each bound holds, of listed entities and of others, and every entity with more events than Rest is
// listed.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		entities := rapid.SampledFrom([]int{10, 500, 5_000, 50_000}).Draw(t, "entities")
		skew := rapid.Float64Range(1.01, 2).Draw(t, "skew")
		draw := rand.NewZipf(random, skew, 1, uint64(entities-1))
		if rapid.Bool().Draw(t, "all alike") {
			draw = rand.NewZipf(random, 1.0001, 1e9, uint64(entities-1))
		}
		at := &clock{start}
		c := New(at.now)
		had := map[string]int64{}
		for range 2 {
			var events []string
			for range 3_000 {
				e := fmt.Sprint("d", draw.Uint64())
				had[e]++
				events = append(events, e)
			}
			count(c, byDevice, events...)
			at.at = at.at.Add(pane)
		}
		at.at = at.at.Add(-pane)
		checkBounds(t, c.Busiest().Keys[0], had)
	})
}

// checkBounds compares what is published with the number of events that entities had.
func checkBounds(t interface{ Errorf(string, ...any) }, k state.BusiestKey, had map[string]int64) {
	listedOnes := map[string]bool{}
	for _, e := range k.Entities {
		listedOnes[e.Entity] = true
		if n := had[e.Entity]; n < e.Events || n > e.Events+e.Error {
			t.Errorf("%+v does not bound the real number of events, %d", e, n)
		}
	}
	for e, n := range had {
		if !listedOnes[e] && n > k.Rest {
			t.Errorf("%s is not listed and had %d events, more than the stated %d of all that are not listed", e, n, k.Rest)
		}
	}
	if !slices.IsSortedFunc(k.Entities, func(a, b state.BusyEntity) int { return cmp.Compare(b.Events, a.Events) }) {
		t.Errorf("the entities are not sorted by their events: %v", k.Entities)
	}
}

// A short list is the beginning of a long one, with the same bound for all that it leaves out.
func TestShortLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		sketches := []*sketch{new(sketch), new(sketch)}
		for range 3_000 {
			e := uint64(random.ExpFloat64() * 500)
			sketches[random.IntN(2)].add(e*0x9e3779b97f4a7c15, fmt.Append(nil, e))
		}
		most := rapid.IntRange(1, 50).Draw(t, "most")
		want := list("device", sketches, 10_000)
		want.Keep(most)
		if diff := gocmp.Diff(want, list("device", sketches, most)); diff != "" {
			t.Errorf("the first %d (-want +got):\n%s", most, diff)
		}
	})
}

// A few hot entities among very many are found, and counted well.
func TestHotEntities(t *testing.T) {
	const hot, each, others = 10, 2000, 400_000
	random := rand.New(rand.NewPCG(1, 2))
	c := New((&clock{start}).now)
	events := make([]string, 0, hot*each+others)
	for i := range hot * each {
		events = append(events, fmt.Sprint("hot", i%hot))
	}
	for range others {
		events = append(events, fmt.Sprint("d", random.IntN(200_000)))
	}
	random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	count(c, byDevice, events...)
	for i, e := range c.Busiest().Keys[0].Entities[:hot] {
		if e.Entity[:3] != "hot" || e.Events < each*3/4 || e.Events > each || e.Events+e.Error < each || e.Error > each/3 {
			t.Errorf("place %d: got %+v, want a hot entity with about %d events", i+1, e, each)
		}
	}
}

// published receives the published counts.
type published chan state.Busiest

func (c published) PublishBusiest(_ context.Context, _ string, b state.Busiest) error {
	c <- b
	return errors.New("away")
}

// The counts are published at each tick, also after the store was unavailable.
func TestPublish(t *testing.T) {
	c := New((&clock{start}).now)
	ctx, cancel := context.WithCancel(t.Context())
	ticks, to, ended := make(chan time.Time), make(published), make(chan bool)
	go func() { c.Publish(ctx, ticks, to, slog.New(slog.DiscardHandler)); close(ended) }()
	for n := int64(1); n <= 2; n++ {
		count(c, byDevice, "d1")
		ticks <- start
		want(t, "published", <-to, "device", state.BusyEntity{Entity: "d1", Events: n})
	}
	cancel()
	<-ended
}

// BenchmarkCount counts the updates of a batch, mostly of different entities.
func BenchmarkCount(b *testing.B) {
	c := New(time.Now)
	batch := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		batch.Update(0, int64(i), fmt.Appendf(nil, "d%06d", random.IntN(100_000)))
		batch.Add(state.Mutation{Series: byDevice})
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Count(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch.Updates)), "ns/update")
}

// BenchmarkBusiest makes the list that is published.
func BenchmarkBusiest(b *testing.B) {
	c := New(time.Now)
	for i := range 100_000 {
		count(c, byDevice, fmt.Sprintf("d%06d", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Busiest()
	}
}
