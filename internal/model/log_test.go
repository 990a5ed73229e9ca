package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
)

// exactWindows have every edge, a delay and none.
var exactWindows = []string{
	"(10s, %s, tile=exact)", "(1m, %s, tile=exact, bounds='[]', where='int != 3')", "(20s, %s, tile=exact, bounds='[)', delay=10s)",
	"(10s, %s, tile=exact, bounds='()', where='bool')", "(lifetime, %s, tile=exact)",
}

// exactDefinitions has every kind over every type that it takes and every
// window, so that a new kind is tested by being in kinds.All.
func exactDefinitions() string {
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
	}
	for i, k := range kinds.All {
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
			fields = []kinds.Type{kinds.Null}
		}
		for _, field := range fields {
			arguments := "event, user"
			switch {
			case spec.Types == nil:
			case spec.FieldLast:
				arguments = "event, user, " + field.String()
			default:
				arguments = "event, " + field.String() + ", user"
			}
			for j, w := range exactWindows {
				fmt.Fprintf(&d, "  f%d_%s_%d: %s%s\n", i, field, j, spec.Name, fmt.Sprintf(w, arguments+options))
			}
		}
	}
	return d.String()
}

// exactEvent draws an event around a moment, each field being absent at times.
func exactEvent(t *rapid.T) features.Record {
	n := func(name string) int64 { return rapid.Int64Range(-4, 4).Draw(t, name) }
	at := recorded*1000 + rapid.Int64Range(-40, 40).Draw(t, "time")*500
	event := map[string]any{
		"string": fmt.Sprint("s", n("string")), "int": n("int"), "float": float64(n("float")) / 4,
		"decimal": float64(n("decimal")) / 8, "bool": rapid.Bool().Draw(t, "bool"), "timestamp": at - 1000*n("timestamp"),
		"location": map[string]int64{"lat": 20 * n("lat"), "lon": 40 * n("lon")},
	}
	for name := range event {
		if rapid.IntRange(0, 4).Draw(t, name+" is absent") == 0 {
			event[name] = nil
		}
	}
	event["at"], event["user"] = at, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "user")
	value, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return features.Record{Partition: kinds.Partition{Topic: "pay"}, Timestamp: recorded*1000 + 60_000, Value: value}
}

// Every kind, answered from the log that the mapper writes, equals the model.
func TestEveryKindFromTheLogEqualsItsModel(t *testing.T) {
	r, err := features.Parse("exact.yaml", []byte(exactDefinitions()))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		model, mapper, logs := New(r), r.NewMapper(), map[string][]byte{}
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			rec := exactEvent(t)
			if err := model.Apply(rec); err != nil {
				t.Fatal(err)
			}
			b := &kinds.Batch{Sources: make([]kinds.Source, 1)}
			if _, err := mapper.Map(&rec, 0, b); err != nil {
				t.Fatal(err)
			}
			for _, touched := range b.Touched {
				for _, op := range b.Ops[touched.From:touched.To] {
					key := op.Series.ID + string(touched.Entity)
					if logs[key] == nil {
						logs[key] = []byte(kinds.LogHeader)
					}
					logs[key] = append(logs[key], op.Member...)
				}
			}
		}
		at := recorded*1000 + rapid.Int64Range(-40, 80).Draw(t, "at")*500
		for _, f := range r.Features {
			for _, user := range []string{"a", "b"} {
				got, err := f.Answer([]kinds.Slice{{Log: logs[f.Series[0].ID+user]}}, at, at)
				if err != nil {
					t.Fatal(err)
				}
				want := model.Answer(f, user, at)
				if !want.Found {
					want.Value = f.Kind.Spec().Neutral
				}
				if diff := cmp.Diff(want.Value, got.Value) + cmp.Diff(want.Items, got.Items); diff != "" || want.Found != (got.Status != features.NotFound) {
					t.Fatalf("%s of %s is %s (-model +log):\n%s", f.Definition, user, got.Status, diff)
				}
			}
		}
	})
}
