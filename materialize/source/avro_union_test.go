package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
)

// branch is a type of a union, with values of it as the library that writes files takes them.
type branch struct {
	name, schema string // the name of the type in a union
	values       []any
}

var (
	ofNull   = branch{"null", `"null"`, []any{nil}}
	ofText   = branch{"string", `"string"`, []any{"", "x", "ä,\"", "a|b"}}
	ofDouble = branch{"double", `"double"`, []any{1.5, -0.25, 1e300}}
	ofLong   = branch{"long", `"long"`, []any{int64(0), int64(-7), int64(1) << 62}}
	ofBool   = branch{"boolean", `"boolean"`, []any{true, false}}
	ofList   = branch{"array", `{"type": "array", "items": "string"}`, []any{[]any{}, []any{"x"}}}
	ofMap    = branch{"map", `{"type": "map", "values": "string"}`, []any{map[string]any{}, map[string]any{"user": "y", "lat": "x", "lon": ""}}}
	ofMoney  = branch{"bytes.decimal", `{"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}`,
		[]any{big.NewRat(5, 2), big.NewRat(-1, 1000), new(big.Rat).SetInt64(1 << 50)}}
	ofTime   = branch{"long.timestamp-millis", `{"type": "long", "logicalType": "timestamp-millis"}`, []any{time.UnixMilli(1769853600500), time.UnixMilli(0)}}
	ofMoment = branch{"string", `"string"`, []any{"2026-01-31T10:00:00Z", "yesterday", ""}}
	ofPlace  = branch{"Place", `{"type": "record", "name": "Place", "fields": [{"name": "lat", "type": ["null", "double", "string"]}, {"name": "lon", "type": "float"}]}`,
		[]any{placeAt(map[string]any{"double": 1.5}), placeAt(map[string]any{"double": 91.0}), placeAt(map[string]any{"string": "x"}), placeAt(nil)}}
	ofWho = branch{"Who", `{"type": "record", "name": "Who", "fields": [{"name": "user", "type": ["null", "string", {"type": "array", "items": "long"}]}, {"name": "again", "type": ["null", "string", "Who"]}]}`,
		[]any{named(nil, nil), named(map[string]any{"string": "b"}, map[string]any{"string": "z"}), named(map[string]any{"array": []any{int64(1)}}, nil),
			named(nil, map[string]any{"Who": named(map[string]any{"string": "inner"}, nil)})}}
	ofBot = branch{"Bot", `{"type": "record", "name": "Bot", "fields": [{"name": "user", "type": ["double", "string"]}, {"name": "more", "type": "int"}]}`,
		[]any{map[string]any{"user": map[string]any{"double": 0.5}, "more": int32(1)}, map[string]any{"user": map[string]any{"string": "c"}, "more": int32(2)}}}
)

func placeAt(lat any) any { return map[string]any{"lat": lat, "lon": float32(2.5)} }

func named(user, again any) map[string]any { return map[string]any{"user": user, "again": again} }

// unions are the types that a field may be of, the first always.
var unions = []struct {
	field    string
	branches []branch
}{
	{"at", []branch{ofTime, ofNull, ofMoment}},
	{"text", []branch{ofText, ofNull, ofDouble, ofList, ofMap, ofBot}},
	{"n", []branch{ofLong, ofNull, ofText, ofDouble, ofList, ofMap}},
	{"ok", []branch{ofBool, ofNull, ofText, ofList, ofWho}},
	{"amount", []branch{ofMoney, ofNull, ofText, ofLong, ofDouble, ofMap}},
	{"place", []branch{ofPlace, ofNull, ofText, ofDouble, ofList, ofMap}},
	{"who", []branch{ofWho, ofNull, ofText, ofList, ofMap, ofBot}},
}

// unionDefinitions are the same for a topic and a file.
const unionDefinitions = `
streams:
  s:
    topic: events
    timestamp: at
    format: {type: avro, schema: x.avsc}
    fields: {text: string, n: int, ok: bool, amount: {type: decimal, scale: 3}, place: location, user: {type: string, path: who.user}}
`

// The records of a file are read like those of a topic, whichever types of unions their values are of: events are the same,
// and what cannot be used is refused with the same message.
func TestAvroUnions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		defined := map[string]bool{} // a named type is described once
		var fields []string
		var drawn [][]branch
		for _, u := range unions {
			branches := []branch{u.branches[0]}
			for _, b := range u.branches[1:] {
				if rapid.Bool().Draw(t, u.field+" may be "+b.name) {
					branches = append(branches, b)
				}
			}
			branches = rapid.Permutation(branches).Draw(t, "order of "+u.field)
			var types []string
			for _, b := range branches {
				if defined[b.name] && strings.Contains(b.schema, `"record"`) {
					b.schema = fmt.Sprintf("%q", b.name)
				}
				defined[b.name], types = true, append(types, b.schema)
			}
			fields = append(fields, fmt.Sprintf(`{"name": %q, "type": [%s]}`, u.field, strings.Join(types, ", ")))
			drawn = append(drawn, branches)
		}
		schema := fmt.Sprintf(`{"type": "record", "name": "Row", "fields": [%s]}`, strings.Join(fields, ", "))
		parsed := avro.MustParse(schema)
		var file bytes.Buffer
		w, err := ocf.NewWriter(&file, parsed)
		if err != nil {
			t.Fatal(err)
		}
		registry, err := definition.LoadFS(fstest.MapFS{"d/s.yaml": {Data: []byte(unionDefinitions)}, "d/x.avsc": {Data: []byte(schema)}}, "d/s.yaml")
		if err != nil {
			t.Fatal(err)
		}
		topic := registry.NewDecoder()
		var want []string
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			row := map[string]any{}
			for i, u := range unions {
				b := rapid.SampledFrom(drawn[i]).Draw(t, u.field)
				if v := rapid.SampledFrom(b.values).Draw(t, "value"); v != nil {
					row[u.field] = map[string]any{b.name: v}
				} else {
					row[u.field] = nil
				}
			}
			value, err := parsed.Encode(row)
			if err := errors.Join(err, w.Encode(row)); err != nil {
				t.Fatal(err)
			}
			rec := record.Record{Timestamp: record.NoTime, Value: value}
			rec.Partition.Topic = "events"
			want = append(want, outcome(topic.Decode(&rec)))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		table, err := newAvro("in.avro", bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if got := outcomes(t, table, registry.Streams[0]); !slices.Equal(got, want) {
			t.Fatalf("of the schema %s:\n%s\nwant as in the topic\n%s", schema, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// outcomes are the events of the rows of a table, or why they cannot be used.
func outcomes(t *rapid.T, table Table, stream *record.Stream) (all []string) {
	s, err := EventsOf(table, stream)
	if err != nil {
		t.Fatal(err)
	}
	decoder := s.NewDecoder([]*record.Stream{stream})
	for {
		var e Event
		if err := s.Next(&e); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		rec := record.Record{Timestamp: record.NoTime, Value: e.Value}
		rec.Partition.Topic = stream.Topic
		all = append(all, outcome(decoder.Decode(&rec)))
	}
}

func outcome(events []record.Event, err error) string {
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, e := range events {
		text += fmt.Sprint(e.Time)
		for _, v := range e.Values {
			text += fmt.Sprintf(" %d:%q", v.Type, v.AppendText(nil))
		}
	}
	return text
}

// Each type of a union has its columns, and one of the union itself tells which it is. A value that a field cannot be is
// refused, and so is a branch that there is not; both errors say where.
func TestAvroUnionRows(t *testing.T) {
	const schema = `{"type": "record", "name": "Row", "fields": [{"name": "at", "type": "string"}, {"name": "id", "type": ["string", "long"]},
  {"name": "who", "type": ["null", "string", {"type": "record", "name": "Who", "fields": [{"name": "user", "type": ["string", {"type": "map", "values": "int"}]}]},
    {"type": "record", "name": "Bot", "fields": [{"name": "user", "type": "string"}, {"name": "more", "type": "int"}]}]},
  {"name": "amount", "type": ["null", "double", {"type": "array", "items": "double"}]}, {"name": "ok", "type": ["null", "boolean"]},
  {"name": "place", "type": ["null", {"type": "array", "items": "int"}, {"type": "record", "name": "Place", "fields": [{"name": "lat", "type": "double"}, {"name": "lon", "type": "double"}]}]},
  {"name": "list", "type": ["null", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}]}]}`
	row := func(changes ...any) []byte {
		t.Helper()
		row := map[string]any{"at": "2026-01-31 10:00:00", "id": map[string]any{"long": int64(7)}, "who": map[string]any{"Bot": map[string]any{"user": "b", "more": int32(1)}},
			"amount": nil, "ok": nil, "place": nil, "list": nil}
		for i := 0; i < len(changes); i += 2 {
			row[changes[i].(string)] = changes[i+1]
		}
		var file bytes.Buffer
		w, err := ocf.NewWriter(&file, avro.MustParse(schema))
		if err := errors.Join(err, w.Encode(row), w.Close()); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	table, err := newAvro("in.avro", bytes.NewReader(row()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(table.Columns(), " "), "at id who who.user who.more amount ok place place.lat place.lon"; got != want {
		t.Errorf("columns %s, want %s", got, want)
	}
	stream := goldenStream(t)
	for name, c := range map[string]struct {
		content []byte
		want    string // an event, or the end of an error
	}{
		"a record":        {row(), "1: 7 1769853600000 b   "},
		"another":         {row("who", map[string]any{"Who": map[string]any{"user": map[string]any{"string": "a"}}}), "1: 7 1769853600000 a   "},
		"a number":        {row("amount", map[string]any{"double": 1.5}), "1: 7 1769853600000 b 1.5  "},
		"a list":          {row("amount", map[string]any{"array": []any{1.5}}), "FILE: row 1: stream pay: amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found an array"},
		"a map":           {row("who", map[string]any{"Who": map[string]any{"user": map[string]any{"map": map[string]any{}}}}), "FILE: row 1: stream pay: who.user: expected a string, found an object"},
		"no record":       {row("who", map[string]any{"string": "x"}), "FILE: row 1: stream pay: who: expected an object, found a string"},
		"no location":     {row("place", map[string]any{"array": []any{int32(1)}}), `FILE: row 1: stream pay: place: expected a location ({"lat": -90 to 90, "lon": -180 to 180}), found an array`},
		"no such branch":  {bytes.Replace(row("who", map[string]any{"string": "xyz"}), []byte("\x02\x06xyz"), []byte("\x08\x06xyz"), 1), "FILE: row 1: malformed Avro at byte 23 of 31: branch 4 of a union of 4"},
		"less than none":  {bytes.Replace(row("who", map[string]any{"string": "xyz"}), []byte("\x02\x06xyz"), []byte("\x01\x06xyz"), 1), "FILE: row 1: malformed Avro at byte 23 of 31: branch -1 of a union of 4"},
		"ends in a union": {bytes.Replace(row("who", map[string]any{"string": "xyz"}), []byte("\x02\x06xyz"), []byte("\x02\x7exyz"), 1), "FILE: row 1: malformed Avro at byte 24 of 31: a value of 63 bytes, with 7 left"},
	} {
		path := write(t, "in.avro", c.content)
		got, err := eventsOf(t, path, stream)
		text := strings.Join(got, "\n")
		if err != nil {
			text = err.Error()
		}
		if want := strings.ReplaceAll(c.want, "FILE", path); text != want {
			t.Errorf("%s: got %q, want %q", name, text, want)
		}
	}
}

// A column with the name of an object, beside those of its parts, does not matter in a file without types.
func TestColumnBesideItsParts(t *testing.T) {
	const lines = "id,at,who.user,amount,ok,place,place.lat,place.lon,who\n1,2026-01-31 10:00:00,a,1,true,Berlin,1,2,x\n2,2026-01-31 10:00:00,,1,true,,,,x\n"
	got, err := eventsOf(t, write(t, "in.csv", []byte(lines)), goldenStream(t))
	if want := []string{"2: 1 1769853600000 a 1 true 1,2", "3: 2 1769853600000  1 true "}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, error %v; want %q", got, err, want)
	}
}
