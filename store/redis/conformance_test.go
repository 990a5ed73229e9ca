package redisstore

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
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// conformanceWindows have tiles of several widths, the default one among them,
// and no tiles.
var conformanceWindows = []struct{ size, options string }{
	{"10s", ""}, {"1h", ", tile=5m, keep=1h"}, {"1d", ", keep=2d"}, {"7d", ", tile=12h, keep=1d"}, {"30d", ", keep=0s"},
	{"7d", ", delay=1d"}, {"lifetime", ""},
	{"10s", ", tile=exact"}, {"1d", ", tile=exact, bounds='[]', keep=2d"}, {"1h", ", tile=exact, bounds='()'"},
	{"7d", ", tile=exact, bounds='[)', delay=1d"}, {"lifetime", ", tile=exact"},
	{"calendar day tz Europe/Berlin", ", keep=2d"}, {"tumbling 6h", ", keep=1d"},
	{"session 20m", ", tile=exact, keep=1d"}, {"last 3", ", tile=exact, exclude=current"},
}

// conformanceDefinitions has every kind in tiles over every type that it takes and
// every window, so that a new kind is tested by being in aggregate.All.
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
	for i, k := range aggregate.All {
		spec := k.Spec()
		if _, ok := k.(aggregate.Mergeable); !ok {
			continue
		}
		fields := []value.Type{value.Null}
		if spec.Types != nil {
			fields = slices.DeleteFunc(slices.Clone(spec.Types), func(t value.Type) bool {
				return t == value.Location || slices.Contains(spec.LogTypes, t)
			})
		}
		for n, field := range fields {
			for j := range conformanceWindows {
				// The first type has all windows, the others have some of them.
				if n == 0 || (i+j+n)%3 == 0 {
					fmt.Fprintf(&d, "  f%d_%s_%d: %s\n", i, field, j, conformanceDefinition(k, field, j, ""))
				}
				if n == i%len(fields) && (i+j)%3 == 0 && spec.Shape == aggregate.Scalar && spec.Members != aggregate.MembersNeeded {
					fmt.Fprintf(&d, "  f%d_%s_%d_per: %s\n", i, field, j, conformanceDefinition(k, field, j, ", per=string"))
				}
			}
		}
	}
	d.WriteString(conformanceThrough)
	return d.String()
}

// conformanceDefinition is a feature of a kind over a field and the j-th window.
func conformanceDefinition(k aggregate.Function, field value.Type, j int, per string) string {
	w, spec := conformanceWindows[j], k.Spec()
	arguments := []string{"user"}
	if j%2 == 1 {
		arguments = []string{"user", "seat"}
	}
	switch {
	case spec.Types == nil:
	case spec.FieldLast:
		arguments = append(arguments, field.String())
	default:
		arguments = append([]string{field.String()}, arguments...)
	}
	options := w.options
	_, keyed := k.(aggregate.Keyed)
	exact, lastSeen := strings.Contains(options, "exact"), spec.Method == "last_seen"
	fromLog := exact || per != "" && (keyed || lastSeen)
	if (spec.DefaultMax > 0 || per != "") && !fromLog {
		options += ", max=4"
	}
	if lastSeen && !fromLog {
		options = strings.Replace(options, ", delay=1d", "", 1) // its edge is exact as it is
	}
	if lastSeen || spec.TilesAreUnits || fromLog {
		options = strings.NewReplacer(", tile=5m", "", ", tile=12h", "").Replace(options)
	}
	if spec.Method != "" {
		options += ", method=" + spec.Method
	}
	given := map[string]string{"k": "3", "p": "0.3", "error": "0.02", "unit": "1h", "fp": "0.4", "bins": "[-2, 1, 3]", "condition": "'int > 1'"}
	switch w.size {
	case "10s":
		given["unit"] = "1s"
	case "1h":
		given["unit"] = "1m"
	}
	for _, p := range spec.Parameters {
		options += ", " + p.Name + "=" + given[p.Name]
	}
	return fmt.Sprintf("%s(%s, event, %s%s, where='int != 3')", spec.Name, w.size, strings.Join(arguments, ", "), options+per)
}

// conformanceThrough are features of the second degree, tiled and exact; users
// have marks in their names.
const conformanceThrough = `
  through_count: COUNT(1d, event, SET(1d, event, user, seat), where='int != 3')
  through_exact: COUNT(1h, event, SET(30d, event, user, seat, delay=1d), tile=exact, max=1)
  through_sum: SUM(7d, event, decimal, SET(1h, event, seat, user), tile=12h, max=2)
  through_exact_sum: SUM(1h, event, int, SET(lifetime, event, seat, user), tile=exact, bounds='()')
  through_distinct: COUNT_DISTINCT(30d, event, user, string, through=LAST_K(7d, event, user, seat, k=2))
  through_exact_distinct: COUNT_DISTINCT(1d, event, SET(1d, event, seat, user), string, tile=exact)
`

// Every kind equals its model on random streams with duplicates, late events
// and events out of order, at random moments and at the edges of tiles.
func TestEveryKindEqualsItsModel(t *testing.T) {
	registry, err := features.Parse("conformance.yaml", []byte(conformanceDefinitions()))
	if err != nil {
		t.Fatal(err)
	}
	onEach(t, 4, func(t *testing.T, s *Store) {
		compared, seeds, batches := 0, uint64(4), 12
		if testkit.Race {
			seeds, batches = 1, 4 // it is slow there, and one goroutine does it all
		}
		var stated, falsely float64
		for seed := range seeds {
			c := &conformance{
				T: t, random: rand.New(rand.NewPCG(seed, 11)), registry: registry, model: model.New(registry),
				store: newStore(t, s.redis, 4), now: 1_532_496_076_032,
			}
			c.writer, c.mapper = c.store.newWriter(), registry.NewMapper()
			start(t, c.store, transactions)
			for range batches {
				c.write()
				c.compare()
			}
			compared += c.compared
			stated, falsely = stated+c.stated, falsely+c.falsely
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		t.Logf("%d features, %d answers compared; members falsely found: %v, stated %.1f", len(registry.Features), compared, falsely, stated)
		if stated < 2.5*float64(seeds) || falsely > 1.5*stated {
			t.Errorf("%v members are found that were not met, and the answers state %.1f", falsely, stated)
		}
	})
}

// conformance is one random stream on its way into a store and a model.
type conformance struct {
	*testing.T
	random   *rand.Rand
	registry *features.Registry
	store    *Store
	writer   *writer
	mapper   *features.Mapper
	model    *model.Model
	now      int64 // time of the newest record, in ms
	written  []record.Record
	compared int
	// stated is the number of members that may be said to have been met though
	// they were not, by the answers' rates, and falsely the number of those that were.
	stated, falsely float64
}

// write applies some records more as one batch.
func (c *conformance) write() {
	c.Helper()
	apply(c, c.writer, c.batch())
}

// batch makes some records more.
func (c *conformance) batch() *state.Batch {
	c.Helper()
	b := begin(c, c.store, transactions)
	for range c.random.IntN(60) {
		r := record.Record{Partition: transactions, Offset: int64(len(c.written))}
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
	return b
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
		at = state.FloorDiv(at, day) * day // on the edge of all tiles
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
	var reading features.Reading
	reading.Reset(clock)
	for _, f := range c.registry.Features {
		for _, entity := range append(c.model.Entities(f), "nobody") {
			for range 3 {
				a := asking{f, entity, c.moment(f, clock), nil}
				if f.Membership() != aggregate.NoMembers && c.random.IntN(2) == 0 {
					for range 1 + c.random.IntN(4) {
						a.members = append(a.members, c.member(f.Call, a.at))
					}
					f = f.AskedAbout(a.members)
				}
				reading.Want(f, entity, a.at)
				asked = append(asked, a)
				f = a.feature
			}
		}
	}
	if err := reading.Read(context.Background(), c.store); err != nil {
		c.Fatal(err)
	}
	c.compared += len(asked)
	for _, a := range asked {
		var got features.Answer
		reading.Next(&got)
		if a.members != nil {
			c.compareMembers(a, got)
			continue
		}
		want := c.model.Answer(a.feature, a.entity, a.at)
		if !equal(got, want, a.feature) {
			c.Errorf("%s of %q at %d: %+v, want %+v", a.feature.Definition, a.entity, a.at, got, want)
		}
	}
}

// compareMembers looks at an answer about members. Each that was met is found;
// of those that were not, no more are than the answers state.
func (c *conformance) compareMembers(a asking, got features.Answer) {
	c.Helper()
	want := c.model.AnswerMembers(a.feature, a.entity, a.at, a.members)
	// A sample of a set does not tell of all values that it does not hold.
	unsure := got.Capped && !want.Capped && a.feature.Series[0].Measure == state.Distinct
	want.Capped = want.Capped || unsure
	if len(got.Items) != len(a.members) || want.Found != (got.Status == features.Present) || got.Exact != (got.FalsePositiveRate == 0 && !want.Capped) {
		c.Errorf("%s of %q at %d: %+v, want %+v", a.feature.Definition, a.entity, a.at, got, want)
		return
	}
	for i, item := range got.Items {
		met := want.Items[i].Value.Num
		if item.Value.Num < met && !unsure || item.Value.Num > met && got.FalsePositiveRate == 0 {
			c.Errorf("%s of %q at %d: %+v is %+v, want %+v", a.feature.Definition, a.entity, a.at, a.members[i], item.Value, want.Items[i].Value)
		}
		if met == 0 {
			c.stated += got.FalsePositiveRate
			c.falsely += float64(item.Value.Num)
		}
	}
}

// member is a value of a field, one that events have or another.
func (c *conformance) member(call aggregate.Call, at int64) value.Value {
	n := c.random.IntN(2000) - 1000
	v := value.Value{Type: call.Type, Scale: call.Scale}
	switch call.Type {
	case value.String:
		v.Str = fmt.Appendf(nil, "s%d", n%10)
	case value.Float:
		v.Flt = float64(n) / 8
	case value.Int:
		v.Num = int64(n % 60)
	case value.Bool:
		v.Num = int64(n & 1)
	case value.Timestamp:
		v.Num = at - int64(n%5)
	default:
		v.Num = 1000*int64(n) + c.random.Int64N(1000)
	}
	return v
}

// asking is a question.
type asking struct {
	feature *features.Feature
	entity  string
	at      int64
	members []value.Value // nil for none
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
			at = state.FloorDiv(at, tile)*tile - c.random.Int64N(2)
		}
	}
	return max(at, oldest)
}

// equal compares an answer with the model's result: exactly, but for the error
// that it states, and the last digits of floats.
func equal(got features.Answer, want aggregate.Result, f *features.Feature) bool {
	status := features.Present
	switch {
	case !want.Found:
		status = features.NotFound
		if f.Per == "" {
			want.Value = f.Kind.Spec().Neutral
		}
	case want.IsNull():
		status = features.NullValue
	}
	if got.Status != status || got.Uncertain != want.Uncertain || got.Capped != want.Capped || len(got.Items) != len(want.Items) {
		return false
	}
	for i, item := range got.Items {
		w := want.Items[i]
		if item.Count != w.Count || !same(item.Value, w.Value, got) || !same(item.Category, w.Category, got) ||
			!same(item.From, w.From, got) || !same(item.To, w.To, got) {
			return false
		}
	}
	return same(got.Value, want.Value, got)
}

func same(got, want value.Value, a features.Answer) bool {
	if got.Type != want.Type || got.Scale != want.Scale {
		return false
	}
	most := a.RelativeError * (1 + 1e-9)
	if got.Type == value.Float {
		most = max(most, 1e-9)
	}
	most *= math.Abs(want.Float64())
	if a.StandardError > 0 {
		most = max(1, 5*a.StandardError*want.Float64())
		if a.StandardError > 0.3 { // a sample of a few values may be far off by chance
			most *= 8
		}
	}
	if most > 0 {
		return math.Abs(got.Float64()-want.Float64()) <= most
	}
	return string(got.AppendText(nil)) == string(want.AppendText(nil))
}
