package model

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// windows are windows in tiles if the function supports tiles, unless they say otherwise.
var windows = []string{
	"(calendar hour tz Australia/Lord_Howe, %s, keep=2d)",
	"(calendar day tz Europe/Berlin, %s, keep=2d)",
	"(calendar day tz America/Havana, %s, keep=2d)",
	"(calendar day tz America/St_Johns, %s, keep=2d)",
	"(calendar day tz America/Sao_Paulo, %s, keep=2d, where='int != 3')",
	"(7d tz America/Havana, %s, keep=2d)",
	"(30d tz Europe/Berlin, %s, keep=2d)",
	"(2d tz America/St_Johns, %s, keep=2d, tile=exact)",
	"(calendar week tz Asia/Kolkata starts sunday, %s, keep=2d, tile=exact)",
	"(calendar month tz Europe/Berlin, %s, keep=2d, tile=exact, exclude=current, delay=1d)",
	"(calendar month tz Asia/Shanghai, %s, keep=2d)",
	"(calendar quarter tz Asia/Shanghai, %s, keep=2d)",
	"(calendar year tz Europe/Berlin, %s, keep=2d)",
	"(tumbling 10s, %s, keep=2d)",
	"(tumbling 6h, %s, keep=2d, tile=exact, where='bool')",
	"(fixed 3s max_length 4s, %s, tile=exact, keep=2d)",
	"(fixed 3s max_length 4s last 2, %s, tile=exact, keep=2d)",
	"(fixed 8h, %s, tile=exact, keep=2d, where='int > 0', delay=1h)",
	"(session 2s max_length 3s, %s, tile=exact, keep=2d, exclude=current_time)",
	"(session 6h max_length 3d, %s, tile=exact, keep=2d, where='bool')",
	"(session 40m last 4, %s, tile=exact, keep=2d)",
	"(last 3, %s, tile=exact, where='int != 0')",
	"(last 4, %s, tile=exact, exclude=current)",
	"(rolling 1d last 3, %s, tile=exact, keep=2d, exclude=current_time)",
	"(1h, %s, keep=2d, tile=exact, exclude=current, bounds='[]')",
	"(7d, %s, keep=2d, tile=exact, exclude=current_time, delay=1d)",
}

// changes are moments at or around a change of clocks, and ordinary ones.
var changes = []string{
	"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", // Berlin
	"2018-11-04T03:00:00Z", "2018-02-18T02:00:00Z", // São Paulo: at midnight
	"2026-11-01T05:00:00Z",                         // Havana: back to midnight
	"2010-11-07T02:31:00Z",                         // St. John's: from after midnight to the day before
	"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z", // Lord Howe: by half an hour
	"2026-01-01T00:00:00Z",
}

// Every function over every window equals the model and reports its coverage, for events that are
// late, out of order or in the same millisecond, at the edges of windows and on days when clocks
// change.
func TestFunctionsOverWindowsEqualModel(t *testing.T) {
	definitions := everyFunction(windows, func(function, window int, types []value.Type) []value.Type {
		return types[(function+window)%len(types):][:1]
	})
	r := defined.Registry(t, definitions)
	rapid.Check(t, func(t *rapid.T) { checkWindows(t, r) })
}

// The answer from a log that keeps too few events covers the last ones by time, whatever their
// order of arrival, and is capped.
func TestCappedLogsEqualModel(t *testing.T) {
	definitions := everyFunction(slices.DeleteFunc(slices.Clone(windows), func(w string) bool {
		return strings.Contains(w, "(calendar") || strings.Contains(w, "d tz ") && !strings.Contains(w, "exact") || strings.Contains(w, "(tumbling")
	}), func(_, _ int, types []value.Type) []value.Type { return types[:1] })
	definitions = strings.ReplaceAll(definitions, "tile=exact", "tile=exact, max=5")
	r := defined.Registry(t, definitions)
	rapid.Check(t, func(t *rapid.T) { checkWindows(t, r) })
}

// checkWindows compares all features with the model after a random stream.
func checkWindows(t *rapid.T, r *features.Registry) {
	c := windowCheck{T: t, registry: r, model: New(r), mapper: r.NewMapper(), store: memory.New()}
	start, _ := time.Parse(time.RFC3339, rapid.SampledFrom(changes).Draw(t, "around"))
	c.step = rapid.SampledFrom([]time.Duration{500 * time.Millisecond, 15 * time.Minute, 7 * time.Hour}).Draw(t, "step").Milliseconds()
	c.now = start.UnixMilli()
	for range rapid.IntRange(0, 20).Draw(t, "events") {
		c.event()
	}
	c.compare(c.now + c.steps(-8, 4))
}

// windowCheck applies one random stream to a store and a model.
type windowCheck struct {
	*rapid.T
	registry  *features.Registry
	model     *Model
	mapper    *features.Mapper
	store     *memory.Store
	now, step int64 // time of the newest record, in ms
}

// steps draws a duration, often a whole number of steps.
func (c *windowCheck) steps(from, to int64) int64 {
	return rapid.Int64Range(from, to).Draw(c.T, "steps")*c.step + rapid.SampledFrom([]int64{0, 0, 0, -1, 1}).Draw(c.T, "off")
}

func (c *windowCheck) event() {
	c.now += max(0, c.steps(-2, 3))
	at := c.now + min(c.steps(-6, 1), 1000)
	rec := record.Record{Partition: state.Partition{Topic: "pay"}, Timestamp: c.now, Value: eventAt(c.T, at)}
	b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	if _, err := c.mapper.Map(&rec, 0, b); err != nil {
		c.Fatal(err)
	}
	if err := c.store.Apply(context.Background(), b); err != nil {
		c.Fatal(err)
	}
	if err := c.model.Apply(rec); err != nil {
		c.Fatal(err)
	}
}

func (c *windowCheck) compare(at int64) {
	oldest := c.now - (2 * 24 * time.Hour).Milliseconds()
	at = max(at, oldest)
	for _, f := range c.registry.Features {
		for _, user := range []string{"a", "b"} {
			c.check(f, user, at, answer(c.T, c.store, f, user, at, c.now))
		}
	}
}

func (c *windowCheck) check(f *features.Feature, user string, at int64, got query.Answer) {
	want, spec := c.model.Answer(f, user, at), aggregate.Spec{}
	_, derived := f.Basis.(*features.Derived)
	if !derived {
		spec = f.Function.Spec()
	}
	switch {
	case derived: // whose default is in the value
	case !want.Found && f.Per != "":
		want.Items = []aggregate.Item{}
	case !want.Found:
		want.Value = spec.Neutral
	}
	near := cmp.Comparer(func(a, b value.Value) bool {
		off := math.Abs(a.Float64() - b.Float64())
		switch {
		case a.Type != b.Type:
			return false
		case spec.StandardError > 0 && !f.Window.Exact:
			return off <= 1
		case got.RelativeError > 0:
			return off <= got.RelativeError*max(math.Abs(a.Float64()), math.Abs(b.Float64()))+1e-9
		case a.Type == value.Float && !f.Window.Exact:
			return off < 1e-7 // moments are merged in varying order
		default:
			return bytes.Equal(a.AppendText(nil), b.AppendText(nil))
		}
	})
	diff := cmp.Diff(want.Value, got.Value, near) + cmp.Diff(want.Items, got.Items, near)
	// Later events may be those of a part, or of another entity, while there is nothing up to the moment.
	found := got.Status != query.NotFound && (want.Found || got.Status != query.LaterEvents)
	if diff != "" || (want.Found || want.Capped) != found || want.Capped != got.Capped || want.Uncertain != got.Uncertain {
		c.Fatalf("%s of %s at %d is %s, capped %v, want capped %v (-model +answer):\n%s",
			f.Definition, user, at, got.Status, got.Capped, want.Capped, diff)
	}
	if len(f.Parts()) > 0 {
		return
	}
	covered := c.model.answers[f].window(user, at)
	from, to := covered.from, covered.to
	if from != got.From {
		c.Fatalf("%s of %s at %d covers from %d, want %d", f.Definition, user, at, got.From, from)
	}
	delay := f.Window.Delay.Milliseconds()
	if exactly := !f.Window.Tiled(); exactly && got.To != to || got.To > max(to, at-delay) || !exactly && got.To < at-delay {
		c.Fatalf("%s of %s at %d covers up to %d, want %d", f.Definition, user, at, got.To, to)
	}
}
