package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

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

// exactWindows cover all edges, with a delay and without.
var exactWindows = []string{
	"(10s, %s, tile=exact)", "(1m, %s, tile=exact, bounds='[]', where='int != 3')", "(20s, %s, tile=exact, bounds='[)', delay=10s)",
	"(10s, %s, tile=exact, bounds='()', where='bool')", "(lifetime, %s, tile=exact)",
}

// exactDefinitions defines every function over every type that it accepts and every window. A new
// function is tested once it is in aggregate.All.
func exactDefinitions() string {
	return everyFunction(exactWindows, func(_, _ int, types []value.Type) []value.Type { return types })
}

// everyFunction defines every function over every window, each over the types that choose returns for
// the indices of the function and the window.
func everyFunction(windows []string, choose func(function, window int, types []value.Type) []value.Type) string {
	var d strings.Builder
	d.WriteString(`
streams:
  event:
    topic: pay
    timestamp: {path: at, unit: ms}
    fields:
      user: string
      string: string
      int: int
      float: float
      decimal: {type: decimal, scale: 3}
      bool: bool
      timestamp: timestamp
      location: location
features:
`)
	given := map[string]string{
		"k": "3", "n": "2", "p": "0.3", "half_life": "4s", "unit": "2s", "bins": "[-2, 1, 3]", "condition": "'int > 1'",
		"error": "0.05", "fp": "0.01", "current": "left_out",
	}
	for i, k := range aggregate.All {
		spec := k.Spec()
		options := ""
		if spec.Method != "" {
			options = ", method=" + spec.Method
		}
		for _, p := range spec.Parameters {
			options += ", " + p.Name + "=" + given[p.Name]
		}
		fields := spec.Types
		if fields == nil {
			fields = []value.Type{value.Null}
		}
		for j, w := range windows {
			options := options
			switch {
			case !spec.TilesAreUnits:
			case strings.Contains(w, "calendar year"):
				options = ", unit=1h"
			case strings.Contains(w, " tz "):
				options = ", unit=15m"
			}
			for _, field := range choose(i, j, fields) {
				arguments := "event, user"
				switch {
				case spec.Types == nil:
				case spec.FieldLast:
					arguments = "event, user, " + field.String()
				default:
					arguments = "event, " + field.String() + ", user"
				}
				fmt.Fprintf(&d, "  f%d_%s_%d: %s%s\n", i, field, j, spec.Name, fmt.Sprintf(w, arguments+options))
				if j%len(exactWindows) == i%len(exactWindows) && spec.Shape == aggregate.Scalar && spec.Members != aggregate.MembersRequired {
					fmt.Fprintf(&d, "  f%d_%s_%d_per: %s%s\n", i, field, j, spec.Name, fmt.Sprintf(w, arguments+options+", per=string"))
				}
			}
		}
	}
	return d.String()
}

// exactEvent draws a record around a moment; each field may be missing.
func exactEvent(t *rapid.T) record.Record {
	at := recorded*1000 + rapid.Int64Range(-40, 40).Draw(t, "time")*500
	return record.Record{Partition: state.Partition{Topic: "pay"}, Timestamp: recorded*1000 + 60_000, Value: eventAt(t, at)}
}

// eventAt draws an event at a time in milliseconds; each field may be missing.
func eventAt(t *rapid.T, at int64) []byte {
	n := func(name string) int64 { return rapid.Int64Range(-4, 4).Draw(t, name) }
	text := fmt.Sprint("s", n("string"))
	if text == "s4" {
		text = ""
	}
	event := map[string]any{
		"string": text, "int": n("int"), "float": float64(n("float")) / 4,
		"decimal": float64(n("decimal")) / 8, "bool": rapid.Bool().Draw(t, "bool"), "timestamp": at - 1000*n("timestamp"),
		"location": map[string]int64{"lat": 20 * n("lat"), "lon": 40 * n("lon")},
	}
	for _, name := range slices.Sorted(maps.Keys(event)) {
		if rapid.IntRange(0, 4).Draw(t, name+" is absent") == 0 {
			event[name] = nil
		}
	}
	event["at"], event["user"] = at, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "user")
	value, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// applyToBoth applies a record to a model, and through a mapper to a store.
func applyToBoth(t *rapid.T, model *Model, mapper *features.Mapper, stored *memory.Store, rec *record.Record) {
	if err := model.Apply(*rec); err != nil {
		t.Fatal(err)
	}
	b := &state.Batch{Ranges: make([]state.PartitionRange, 1), Now: rec.Timestamp}
	if _, err := mapper.Map(rec, 0, b); err != nil {
		t.Fatal(err)
	}
	if err := stored.Apply(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// Every function, answered from the log that the mapper writes, equals the model.
func TestFunctionsFromTheLogEqualModel(t *testing.T) {
	r := defined.Registry(t, exactDefinitions())
	rapid.Check(t, func(t *rapid.T) {
		model, mapper, stored := New(r), r.NewMapper(), memory.New()
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			rec := exactEvent(t)
			applyToBoth(t, model, mapper, stored, &rec)
		}
		at := recorded*1000 + rapid.Int64Range(-40, 80).Draw(t, "at")*500
		for _, f := range r.Features {
			for _, user := range []string{"a", "b"} {
				got := answer(t, stored, f, user, at, at)
				want := model.Answer(f, user, at)
				if f.Membership() == aggregate.MembersRequired {
					members := []value.Value{{Type: f.Call.Type, Scale: f.Call.Scale, Str: []byte("s1"), Num: 1}, {Type: f.Call.Type, Str: []byte("x")}}
					got = answer(t, stored, f.AskedAbout(members), user, at, at)
					want = model.AnswerMembers(f, user, at, members)
				}
				switch {
				case !want.Found && f.Per != "":
					want.Items = []aggregate.Item{}
				case !want.Found:
					want.Value = f.Function.Spec().Neutral
				}
				if diff := cmp.Diff(want.Value, got.Value) + cmp.Diff(want.Items, got.Items); diff != "" || (want.Found || want.Capped) != (got.Status != query.NotFound) {
					t.Fatalf("%s of %s is %s (-model +log):\n%s", f.Definition, user, got.Status, diff)
				}
			}
		}
	})
}
