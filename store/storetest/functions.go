package storetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// testFunctions compares every function with its model on random streams with duplicates, late
// events and events out of order, at random moments and at the edges of tiles. Open makes an empty
// store.
func testFunctions(t *testing.T, open func() State) {
	registry := parse(t, conformanceDefinitions())
	compared, later, seeds, batches := 0, 0, uint64(4), 12
	if testkit.Race {
		seeds, batches = 1, 4 // one goroutine does all the work
	}
	var stated, falsely float64
	for seed := range seeds {
		c := newConformance(t, open(), registry, rand.New(rand.NewPCG(seed, 11)))
		for range batches {
			c.write()
			c.compare()
		}
		compared, later = compared+c.compared, later+c.later
		stated, falsely = stated+c.stated, falsely+c.falsely
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if later < compared/50 || later > compared/2 {
		t.Errorf("%d of %d answers may count later events", later, compared)
	}
	t.Logf("%d features, %d answers compared, of which %d may count later events; members falsely found: %v, stated %.1f", len(registry.Features), compared, later, falsely, stated)
	// The secrets of namespaces are random, and so is the number of false positives. Its standard deviation is about
	// 1.1 times the root of the stated number, measured over 60 secrets.
	if stated < 2.5*float64(seeds) || falsely > stated+7*math.Sqrt(stated) {
		t.Errorf("%v members are found that never occurred, the answers state %.1f", falsely, stated)
	}
}

func parse(t *testing.T, definitions string) *features.Registry {
	t.Helper()
	return defined.Registry(t, definitions)
}

// conformance is one random stream on its way into a store and a model.
type conformance struct {
	*testing.T
	random   *rand.Rand
	registry *features.Registry
	state    State
	mapper   *features.Mapper
	model    *model.Model
	now      int64 // time of the newest record, in ms
	written  []record.Record
	compared int
	later    int // answers that may count later events
	// stated is the expected number of false positives by the answers' rates, and falsely the actual number.
	stated, falsely float64
}

func newConformance(t *testing.T, s State, r *features.Registry, random *rand.Rand) *conformance {
	return &conformance{T: t, random: random, registry: r, state: s, mapper: r.NewMapper(), model: model.New(r), now: 1_532_496_076_032}
}

// write applies some further records as one batch.
func (c *conformance) write() {
	c.Helper()
	c.apply(c.batch())
}

func (c *conformance) apply(b *state.Batch) {
	c.Helper()
	if err := c.state.Apply(context.Background(), b); err != nil {
		c.Fatal(err)
	}
}

// begin makes an empty batch after the last one written.
func (c *conformance) begin() *state.Batch {
	return &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions, To: int64(len(c.written))}}}
}

// batch makes some further records.
func (c *conformance) batch() *state.Batch {
	c.Helper()
	b := c.begin()
	for range c.random.IntN(60) {
		r := record.Record{Partition: transactions, Offset: int64(len(c.written))}
		if n := len(c.written); n > 0 && c.random.IntN(10) == 0 {
			r.Value = c.written[c.random.IntN(n)].Value // a duplicate, perhaps an old one
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
		b.Ranges[0].To = r.Offset + 1
	}
	return b
}

// event makes the next event. Sums of its floats are exact.
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
	edge := func(ordinary string, edges ...string) string {
		if c.random.IntN(12) > 0 {
			return ordinary
		}
		return edges[c.random.IntN(len(edges))]
	}
	members := []string{
		fmt.Sprintf(`"user":"u|%d"`, c.random.IntN(3)), fmt.Sprintf(`"seat":%d`, c.random.IntN(2)),
		`"string":` + edge(fmt.Sprintf(`"s%d"`, n%7), `""`, `"|"`, `"\u0000"`, `"\\"`, "null", `"`+strings.Repeat("é", 700)+`"`),
		`"int":` + edge(strconv.Itoa(n%50), "0", "9223372036854775807", "-9223372036854775808", "null"),
		`"float":` + edge(fmt.Sprint(float64(n)/8), "0", "-0.0", "1e6", "5e-324", "null"),
		`"decimal":` + edge(fmt.Sprintf("%d.%03d", n, c.random.IntN(1000)), "0", "-0.000", "9223372036854775.807", "-9223372036854775.808", "null"),
		fmt.Sprintf(`"bool":%v`, n%2 == 0),
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
	clock, err := c.state.Clock(context.Background())
	if err != nil {
		c.Fatal(err)
	}
	var asked []asking
	var reading query.Reading
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
	if keyed, ok := c.state.(interface {
		Secret(context.Context) (state.Secret, error)
	}); ok {
		if c.model.Secret, err = keyed.Secret(context.Background()); err != nil {
			c.Fatal(err)
		}
	}
	if err := reading.Read(context.Background(), c.state); err != nil {
		c.Fatal(err)
	}
	c.compared += len(asked)
	for _, a := range asked {
		var got query.Answer
		reading.Next(&got)
		if a.members != nil {
			c.compareMembers(a, got)
			continue
		}
		want := c.model.Answer(a.feature, a.entity, a.at)
		if a.at < clock {
			c.comparePast(a, &got, want)
		}
		if !equal(got, want, a.feature) {
			c.Errorf("%s of %q at %d: %+v, want %+v", a.feature.Definition, a.entity, a.at, got, want)
		}
	}
}

// comparePast checks that an answer as of a past moment counts no later event, or says that it may, which it must not if
// no tile that ends after the moment has events. It then removes the mark.
func (c *conformance) comparePast(a asking, got *query.Answer, all aggregate.Result) {
	c.Helper()
	if !got.LaterEvents {
		if until := c.model.AnswerUntil(a.feature, a.entity, a.at); !equal(*got, until, a.feature) {
			c.Errorf("%s of %q at %d, which counts no later events: %+v, want %+v", a.feature.Definition, a.entity, a.at, *got, until)
		}
		return
	}
	c.later++
	if got.Exact || got.Status != query.LaterEvents {
		c.Errorf("%s of %q at %d may count later events: %+v, want the status %s and not exact", a.feature.Definition, a.entity, a.at, *got, query.LaterEvents)
	}
	if f := a.feature; len(f.Parts()) == 0 {
		since := state.MinTime
		if tile := f.Window.Tile.Milliseconds(); tile > 0 {
			since = state.FloorDiv(a.at, tile) * tile
		}
		if f.Spec.Method == "last_seen" {
			since = a.at + 1
		}
		if f.Window.Exact || f.Window.Delay >= f.Window.Tile && f.Window.Tile > 0 || !c.model.Has(f, a.entity, since) {
			c.Errorf("%s of %q at %d: %+v, but there is no later event", f.Definition, a.entity, a.at, *got)
		}
	}
	got.Status, got.Exact = statusOf(all), !got.Capped
}

// compareMembers checks an answer about members. All members in the window are found, and no more of the others than
// the answers state.
func (c *conformance) compareMembers(a asking, got query.Answer) {
	c.Helper()
	want := c.model.AnswerMembers(a.feature, a.entity, a.at, a.members)
	if got.LaterEvents {
		got.Status, got.Exact = statusOf(want), got.FalsePositiveRate == 0 && !got.Capped
	}
	// A sample of a set cannot tell about all values that it lacks.
	unsure := got.Capped && !want.Capped && a.feature.Series[0].Measure == state.Distinct
	want.Capped = want.Capped || unsure
	if len(got.Items) != len(a.members) || want.Found != (got.Status == query.Present) || got.Exact != (got.FalsePositiveRate == 0 && !want.Capped) {
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

// member returns a value of a field, of events or another.
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

// moment returns one at which the feature can be asked, often at the edge of a tile.
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

// equal compares an answer with the model's result: exactly, except for its stated error and the
// last digits of floats.
func equal(got query.Answer, want aggregate.Result, f *features.Feature) bool {
	if !want.Found && f.Per == "" {
		want.Value = f.Spec.Neutral
	}
	if got.Status != statusOf(want) || got.Uncertain != want.Uncertain || got.Capped != want.Capped || len(got.Items) != len(want.Items) {
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

// statusOf returns the status of an answer that is not marked.
func statusOf(want aggregate.Result) query.Status {
	switch {
	case !want.Found:
		return query.NotFound
	case want.IsNull():
		return query.NullValue
	}
	return query.Present
}

func same(got, want value.Value, a query.Answer) bool {
	if got.Type != want.Type || got.Scale != want.Scale {
		return false
	}
	most := a.RelativeError * (1 + 1e-9)
	if got.Type == value.Float {
		most = max(most, 1e-9)
	}
	most *= math.Abs(want.Float64())
	if a.StandardError > 0 {
		const collisions = 3 // of a few values in a HyperLogLog, whatever the secret
		from, to := testkit.SampleBounds(a.StandardError)
		return got.Float64() >= from*want.Float64()-collisions && got.Float64() <= to*want.Float64()+collisions
	}
	if most > 0 {
		return math.Abs(got.Float64()-want.Float64()) <= most
	}
	return string(got.AppendText(nil)) == string(want.AppendText(nil))
}
