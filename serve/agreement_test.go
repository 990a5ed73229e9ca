package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const definitions = `
streams:
  payment:
    topic: payments
    timestamp: {path: time, unit: ms}
    fields:
      s: string
      i: int
      d: {type: decimal, scale: 2}
      b: bool
      t: timestamp
features:
  asked: COUNT(7d, payment, %s)
`

// by compiles a feature with those keys.
func by(t testing.TB, keys string) *features.Registry {
	t.Helper()
	return defined.Registry(t, fmt.Sprintf(definitions, keys))
}

// agree checks that an event and a question with the same JSON have the same entity, and returns its text. Both must
// refuse values of other types.
func agree(t *testing.T, r *features.Registry, keys string) (entity string, ok bool) {
	t.Helper()
	now := noon.UnixMilli()
	var batch state.Batch
	record := &record.Record{
		Partition: state.Partition{Topic: "payments"}, Timestamp: now,
		Value: fmt.Appendf(nil, `{"time": %d, %s}`, now, keys),
	}
	_, poison := r.NewMapper().Map(record, 0, &batch)

	reader := &fakeReader{}
	h := newHandler(reader, func(c *setup) { c.Registry = func() *features.Registry { return r } })
	w := do(t, h, "POST", queryPath, fmt.Sprintf(`{"features": ["asked"], "entities": [{%s}]}`, keys))
	if w.Code != http.StatusOK {
		if poison == nil && len(batch.Updates) > 0 {
			t.Errorf("%s: counted as %q, but the question is refused: %s", keys, batch.Updates[0].Entity, w.Body)
		}
		return "", false
	}
	if poison != nil {
		t.Errorf("%s: answered, but such an event is poison: %v", keys, poison)
		return "", false
	}
	if len(batch.Updates) != 1 {
		t.Fatalf("%s: the event touched %d entities, want 1", keys, len(batch.Updates))
	}
	entity = reader.calls[0][0].Entity
	if string(batch.Updates[0].Entity) != entity {
		t.Errorf("%s: counted as %q, asked for as %q", keys, batch.Updates[0].Entity, entity)
	}
	return entity, true
}

func TestEventsAndQuestionsAgree(t *testing.T) {
	for _, test := range []struct{ by, keys, want string }{
		{"s", `"s": "d000001"`, "d000001"},
		{"s", `"s": ""`, ""},
		{"s", `"s": "a|b\\c\"\u00e9\ud83d\ude00"`, `a\|b\\c"é😀`},
		{"s", `"s": "\ud800"`, "\uFFFD"},
		{"i", `"i": -7`, "-7"},
		{"i", `"i": 1.0`, "1"},
		{"i", `"i": 1e3`, "1000"},
		{"i", `"i": -0`, "0"},
		{"i", `"i": 9223372036854775807`, "9223372036854775807"},
		{"d", `"d": 166.600`, "166.6"},
		{"d", `"d": -0.05`, "-0.05"},
		{"d", `"d": 1E-2`, "0.01"},
		{"d", `"d": 0e-7`, "0"},
		{"d", `"d": "12.50"`, "12.5"},
		{"b", `"b": true`, "true"},
		{"b", `"b": false`, "false"},
		{"t", `"t": 1532496076032`, "1532496076032"},
		{"t", `"t": "2018-07-25T13:21:16.0329+08:00"`, "1532496076032"},
		{"t, s, i, d, b", `"s": "x", "t": 0, "b": true, "d": 1.5, "i": 2`, "0|true|1.5|2|x"},
	} {
		if got, ok := agree(t, by(t, test.by), test.keys); !ok || got != test.want {
			t.Errorf("%s: entity %q, accepted %t; want %q", test.keys, got, ok, test.want)
		}
	}
	for key, literals := range map[string][]string{
		"i": {`1.5`, `1e-1`, `9223372036854775808`, `1e19`, `1e999999999999999999999`, `"1"`, `true`},
		"d": {`1.001`, `""`, `"1 "`, `"true"`, `"-"`, `[]`},
		"t": {`"1532496076032"`, `"2018-07-25"`, `253402300800000`, `-62135596800001`},
		"b": {`0`, `"true"`, `{}`},
		"s": {`0`, `false`},
	} {
		for _, literal := range literals {
			keys := fmt.Sprintf("%q: %s", key, literal)
			if got, ok := agree(t, by(t, key), keys); ok {
				t.Errorf("%s: accepted as %q, want it to be refused", keys, got)
			}
		}
	}
}

func FuzzEventsAndQuestionsAgree(f *testing.F) {
	for _, literal := range []string{`"d000001"`, `"\ud83d"`, `-0.0e-5`, `1e2`, `0.010`, `true`, `1532496076032`} {
		f.Add(literal)
	}
	registries := map[string]*features.Registry{}
	for _, key := range []string{"s", "i", "d", "b", "t"} {
		registries[key] = by(f, key)
	}
	f.Fuzz(func(t *testing.T, literal string) {
		if !json.Valid([]byte(literal)) {
			return
		}
		for key, r := range registries {
			agree(t, r, fmt.Sprintf("%q: %s", key, literal))
		}
	})
}
