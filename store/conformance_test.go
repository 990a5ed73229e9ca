package store

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/internal/model"
)

// conformanceWindows have tiles of several widths, the default one among them,
// and no tiles.
var conformanceWindows = []struct{ size, options string }{
	{"10s", ""}, {"1h", ", tile=5m, keep=1h"}, {"1d", ", keep=2d"}, {"7d", ", tile=12h, keep=1d"}, {"30d", ", keep=0s"},
	{"7d", ", delay=1d"}, {"lifetime", ""},
	{"10s", ", tile=exact"}, {"1d", ", tile=exact, bounds='[]', keep=2d"}, {"1h", ", tile=exact, bounds='()'"},
	{"7d", ", tile=exact, bounds='[)', delay=1d"}, {"lifetime", ", tile=exact"},
}

// conformanceDefinitions has every kind in tiles over every type that it takes and
// every window, so that a new kind is tested by being in kinds.All.
func conformanceDefinitions() string {
	var d strings.Builder
	d.WriteString(`
streams:
  event:
    topic: transactions
    timestamp: {path: at, unit: ms}
    fields:
      user: string
      seat: int
      string: string
      int: int
      float: float
      decimal: {type: decimal, scale: 3}
      bool: bool
      timestamp: timestamp
features:
`)
	for i, k := range kinds.All {
		spec := k.Spec()
		if _, ok := k.(kinds.Tiled); !ok {
			continue
		}
		fields := []string{""}
		if spec.Types != nil {
			fields = nil
			for _, t := range spec.Types {
				if !slices.Contains(spec.LogTypes, t) {
					fields = append(fields, t.String())
				}
			}
		}
		for _, field := range fields {
			for j, w := range conformanceWindows {
				arguments := []string{"user"}
				if j%2 == 1 {
					arguments = []string{"user", "seat"}
				}
				if spec.FieldLast {
					arguments = append(arguments, field)
				} else if field != "" {
					arguments = append([]string{field}, arguments...)
				}
				options, exact := w.options, strings.Contains(w.options, "exact")
				if spec.Method != "" {
					options += ", method=" + spec.Method
				}
				if spec.DefaultMax > 0 && !exact {
					options += ", max=4"
				}
				if spec.Method == "last_seen" && !exact {
					// Its edge is exact as it is.
					options = strings.NewReplacer(", tile=5m", "", ", tile=12h", "", ", delay=1d", "").Replace(options)
				}
				fmt.Fprintf(&d, "  f%d_%s_%d: %s(%s, event, %s%s, where='int != 3')\n",
					i, field, j, spec.Name, w.size, strings.Join(arguments, ", "), options)
			}
		}
	}
	return d.String()
}

// Every kind equals its model on random streams with duplicates, late events
// and events out of order, at random moments and at the edges of tiles.
func TestEveryKindEqualsItsModel(t *testing.T) {
	registry, err := features.Parse("conformance.yaml", []byte(conformanceDefinitions()))
	if err != nil {
		t.Fatal(err)
	}
	onEach(t, 4, func(t *testing.T, s *Store) {
		compared := 0
		for seed := range uint64(4) {
			c := &conformance{
				T: t, random: rand.New(rand.NewPCG(seed, 11)), registry: registry, model: model.New(registry),
				store: newStore(t, s.redis, 4), now: 1_532_496_076_032,
			}
			c.writer, c.mapper = c.store.NewWriter(), registry.NewMapper()
			start(t, c.store, transactions)
			for range 12 {
				c.write()
				c.compare()
			}
			compared += c.compared
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		t.Logf("%d features, %d answers compared", len(registry.Features), compared)
	})
}

// conformance is one random stream on its way into a store and a model.
type conformance struct {
	*testing.T
	random   *rand.Rand
	registry *features.Registry
	store    *Store
	writer   *Writer
	mapper   *features.Mapper
	model    *model.Model
	now      int64 // time of the newest record, in ms
	written  []features.Record
	compared int
}

// write applies some records more as one batch.
func (c *conformance) write() {
	c.Helper()
	b := begin(c, c.store, transactions)
	for range c.random.IntN(60) {
		r := features.Record{Partition: transactions, Offset: int64(len(c.written))}
		if n := len(c.written); n > 0 && c.random.IntN(10) == 0 {
			r.Value = c.written[c.random.IntN(n)].Value // a duplicate, be it of long ago
		} else {
			r.Value = c.event()
		}
		r.Timestamp = c.now
		c.written = append(c.written, r)
		if _, err := c.mapper.Map(&r, 0, b); err != nil {
			c.Fatal(err)
		}
		if err := c.model.Apply(r); err != nil {
			c.Fatal(err)
		}
		b.Sources[0].To = r.Offset + 1
	}
	apply(c, c.writer, b)
}

// event makes the next event. Its floats are such that sums of them are exact.
func (c *conformance) event() []byte {
	steps := []time.Duration{0, time.Millisecond, 3 * time.Second, 20 * time.Minute, 5 * time.Hour}
	c.now += c.random.Int64N(steps[c.random.IntN(len(steps))].Milliseconds() + 1)
	at := c.now
	switch c.random.IntN(10) {
	case 0, 1:
		at -= c.random.Int64N(2 * time.Hour.Milliseconds()) // out of order
	case 2:
		at -= c.random.Int64N(40 * 24 * time.Hour.Milliseconds()) // late for most
	case 3:
		at += c.random.Int64N(5 * time.Minute.Milliseconds()) // ahead, as far as is allowed
	case 4:
		at = kinds.FloorDiv(at, day) * day // on the edge of all tiles
	}
	n := c.random.IntN(2000) - 1000
	members := []string{
		fmt.Sprintf(`"user":"u|%d"`, c.random.IntN(3)), fmt.Sprintf(`"seat":%d`, c.random.IntN(2)),
		fmt.Sprintf(`"string":"s%d"`, n%7), fmt.Sprintf(`"int":%d`, n%50), fmt.Sprintf(`"float":%v`, float64(n)/8),
		fmt.Sprintf(`"decimal":%d.%03d`, n, c.random.IntN(1000)), fmt.Sprintf(`"bool":%v`, n%2 == 0),
		fmt.Sprintf(`"timestamp":%d`, at-int64(n%5)),
	}
	if c.random.IntN(5) == 0 {
		members = slices.Delete(members, 7, 8)
		members = append(members[:2], members[2+c.random.IntN(5):]...) // with some fields absent
	}
	return fmt.Appendf(nil, `{"at":%d,%s}`, at, strings.Join(members, ","))
}

// compare asks for all features of all entities, each at some moments.
func (c *conformance) compare() {
	c.Helper()
	clock, err := c.store.Clock(context.Background())
	if err != nil {
		c.Fatal(err)
	}
	var asked []asking
	var reads []kinds.Read
	for _, f := range c.registry.Features {
		for _, entity := range append(c.model.Entities(f), "nobody") {
			for range 3 {
				a := asking{f, entity, c.moment(f, clock), len(reads)}
				reads = f.Reads(reads, entity, a.at)
				asked = append(asked, a)
			}
		}
	}
	held, err := c.store.Read(context.Background(), reads)
	if err != nil {
		c.Fatal(err)
	}
	c.compared += len(asked)
	for _, a := range asked {
		got, err := a.feature.Answer(held[a.first:a.first+len(a.feature.Series)], a.at, clock)
		if err != nil {
			c.Fatal(err)
		}
		want := c.model.Answer(a.feature, a.entity, a.at)
		if !equal(got, want, a.feature.Kind.Spec()) {
			c.Errorf("%s of %q at %d: %+v, want %+v", a.feature.Definition, a.entity, a.at, got, want)
		}
	}
}

// asking is a question whose reads begin at first.
type asking struct {
	feature *features.Feature
	entity  string
	at      int64
	first   int
}

// moment is one for which the feature is kept, often at the edge of a tile.
func (c *conformance) moment(f *features.Feature, clock int64) int64 {
	oldest := clock - f.Keep.Milliseconds()
	at := oldest + c.random.Int64N(clock-oldest+10*time.Minute.Milliseconds())
	switch c.random.IntN(4) {
	case 0:
		at = clock
	case 1, 2:
		if tile := f.Window.Tile.Milliseconds(); tile > 0 {
			at = kinds.FloorDiv(at, tile)*tile - c.random.Int64N(2)
		}
	}
	return max(at, oldest)
}

// equal compares an answer with the model's result: exactly, but for estimates.
func equal(got features.Answer, want kinds.Result, spec kinds.Spec) bool {
	status := features.Present
	switch {
	case !want.Found:
		status, want.Value = features.NotFound, spec.Neutral
	case want.Value.IsNull():
		status = features.NullValue
	}
	if got.Status != status || got.Uncertain != want.Uncertain || got.Capped != want.Capped {
		return false
	}
	if spec.StandardError > 0 {
		off := math.Abs(got.Value.Float64() - want.Value.Float64())
		return off <= max(1, 5*spec.StandardError*want.Value.Float64())
	}
	return got.Value.Type == want.Value.Type && string(got.Value.AppendText(nil)) == string(want.Value.AppendText(nil))
}
