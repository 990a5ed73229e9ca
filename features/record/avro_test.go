package record_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/twmb/avro"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// avroSchema uses every type of Avro.
const avroSchema = `{"type": "record", "name": "Payment", "namespace": "shop", "fields": [
  {"name": "before", "type": {"type": "array", "items": {"type": "map", "values": ["null", "string", "Payment"]}}},
  {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "id", "type": {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"}},
  {"name": "str", "type": ["null", "string"]},
  {"name": "int", "type": ["null", "int"]},
  {"name": "long", "type": "long"},
  {"name": "float", "type": "float"},
  {"name": "double", "type": ["null", "double"]},
  {"name": "dec", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}]},
  {"name": "fixed", "type": {"type": "fixed", "name": "Price", "size": 12, "logicalType": "decimal", "precision": 20, "scale": 3}},
  {"name": "bool", "type": ["null", "boolean"]},
  {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
  {"name": "day", "type": {"type": "int", "logicalType": "date"}},
  {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["OPEN", "PAID"]}},
  {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [
    {"name": "name", "type": "string"}, {"name": "lat", "type": "double"}, {"name": "lon", "type": "double"}]}]},
  {"name": "tags", "type": {"type": "map", "values": ["string", {"type": "array", "items": "null"}, "shop.Place"]}},
  {"name": "nothing", "type": {"type": "array", "items": "null"}},
  {"name": "after", "type": "bytes"}]}`

const avroDefinitions = `
streams:
  s:
    topic: events
    timestamp: t
    id: id
    format: {type: avro, schema: payment.avsc}
    fields:
      str: string
      int: int
      long: int
      float: float
      as_dec: {type: decimal, path: float}
      double: float
      dec: decimal
      dec_float: {type: float, path: dec}
      fixed: {type: decimal, scale: 3}
      bool: bool
      micros: timestamp
      raw: {type: int, path: micros}
      day: timestamp
      status: string
      place: location
      town: {type: string, path: place.name}
      tag: {type: string, path: tags.color}
      shop: {type: string, path: tags.shop.name}
`

// avroDecoder decodes records of a schema.
func avroDecoder(t testing.TB, schema, definitions string) *record.Decoder {
	t.Helper()
	r, err := definition.LoadFS(fstest.MapFS{
		"d/test.yaml": {Data: []byte(definitions)}, "d/payment.avsc": {Data: []byte(schema)},
	}, "d/test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return r.NewDecoder()
}

// payment is an event of avroSchema.
func payment() map[string]any {
	return map[string]any{
		"before": []any{map[string]any{"x": nil, "y": map[string]any{"string": "text"}}},
		"t":      int64(1_700_000_000_000), "id": [16]byte{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 1, 2, 3, 4, 5, 6, 7, 8},
		"str": nil, "int": nil, "long": int64(-1), "float": float32(0.1), "double": nil, "dec": nil,
		"fixed": big.NewRat(-5, 1000), "bool": nil, "micros": int64(1_700_000_000_000_999), "day": 19675, "status": "PAID",
		"place": nil, "tags": map[string]any{}, "nothing": []any{nil, nil}, "after": []byte("after"),
	}
}

func avroBytes(t testing.TB, schema string, event map[string]any) []byte {
	t.Helper()
	data, err := avro.MustParse(schema).Encode(event)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func avroRecord(data []byte) *record.Record {
	return &record.Record{Partition: state.Partition{Topic: "events"}, Offset: 42, Timestamp: record.NoTime, Value: data}
}

func shown(e record.Event) string {
	texts := []string{fmt.Sprint(e.Time), string(e.ID)}
	for _, v := range e.Values {
		texts = append(texts, show(v))
	}
	return strings.Join(texts, ", ")
}

func TestAvroValues(t *testing.T) {
	d := avroDecoder(t, avroSchema, avroDefinitions)
	least := "1700000000000, 12345678-9abc-def0-0102-030405060708, null, null, int -1, float 0.1, decimal 0.1, null, null, null, decimal -0.005, null, " +
		"timestamp 1700000000000, int 1700000000000999, timestamp 1699920000000, string PAID, null, null, null, null"
	great, _ := new(big.Rat).SetString("-92233720368547758.08")
	wide, _ := new(big.Rat).SetString("1234567890123456789012345.67")
	for name, c := range map[string]struct {
		set  map[string]any
		want string
	}{
		"nulls": {nil, least},
		"values": {map[string]any{
			"str": map[string]any{"string": "ä"}, "int": map[string]any{"int": math.MinInt32}, "long": int64(math.MaxInt64), "float": float32(2.5),
			"double": map[string]any{"double": 1e-9}, "dec": map[string]any{"bytes.decimal": great}, "fixed": big.NewRat(123, 1),
			"bool": map[string]any{"boolean": true}, "day": -1, "status": "OPEN",
			"place": map[string]any{"shop.Place": map[string]any{"name": "Riga", "lat": -90.0, "lon": 180.0}},
			"tags": map[string]any{"color": map[string]any{"string": "red"}, "size": map[string]any{"array": []any{nil}},
				"shop": map[string]any{"shop.Place": map[string]any{"name": "Rimi", "lat": 0.0, "lon": 0.0}}},
		}, "1700000000000, 12345678-9abc-def0-0102-030405060708, string ä, int -2147483648, int 9223372036854775807, float 2.5, decimal 2.5, float 1e-09, " +
			"decimal -92233720368547758.08, float -9.223372036854776e+16, decimal 123, bool true, timestamp 1700000000000, int 1700000000000999, " +
			"timestamp -86400000, string OPEN, location -90,180, string Riga, string red, string Rimi"},
	} {
		event := payment()
		for k, v := range c.set {
			event[k] = v
		}
		events, err := d.Decode(avroRecord(avroBytes(t, avroSchema, event)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := shown(events[0]); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
	event := payment()
	event["dec"] = map[string]any{"bytes.decimal": wide}
	_, err := d.Decode(avroRecord(avroBytes(t, avroSchema, event)))
	if want := "stream s: dec: expected a 64-bit decimal with at most 2 digits after the decimal point, found 1234567890123456789012345.67"; fmt.Sprint(err) != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestAvroPoison(t *testing.T) {
	d := avroDecoder(t, `{"type": "record", "name": "P", "fields": [{"name": "t", "type": "long"}, {"name": "s", "type": ["null", "string", "int"]},
  {"name": "f", "type": "double"}, {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}}, {"name": "b", "type": "boolean"},
  {"name": "a", "type": {"type": "array", "items": "int"}}]}`, `
streams:
  s:
    topic: events
    timestamp: t
    format: {type: avro, schema: payment.avsc}
    fields: {s: string, f: float}
`)
	float := "\x00\x00\x00\x00\x00\x00\x00\x00"
	for data, want := range map[string]string{
		"\x02\x02\x02a" + float + "\x00\x01\x00": "",
		"":                                       "malformed Avro at byte 0 of 0: the record ends within a number",
		"\x80":                                   "malformed Avro at byte 0 of 1: the record ends within a number",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": "malformed Avro at byte 0 of 11: a number of more than 64 bits",
		"\x02\x06":                              "malformed Avro at byte 2 of 2: branch 3 of a union of 3",
		"\x02\x02\x0aabc":                       "malformed Avro at byte 3 of 6: a value of 5 bytes, with 3 left",
		"\x02\x02\x01abc":                       "malformed Avro at byte 3 of 6: a value of -1 bytes, with 3 left",
		"\x02\x00" + float + "\x02":             "malformed Avro at byte 11 of 11: symbol 1 of an enum of 1",
		"\x02\x00" + float + "\x00\x02":         "malformed Avro at byte 12 of 12: a boolean that is 2",
		"\x02\x00" + float + "\x00\x00\x00more": "malformed Avro at byte 13 of 17: the record continues after its last field",
		"\x02\x00" + float + "\x00\x00\x04\xff\xff\xff\xff\x1f":                 "malformed Avro at byte 18 of 18: an int of more than 32 bits",
		"\x02\x00" + float + "\x00\x00\x01\x63abc":                              "malformed Avro at byte 14 of 17: a block of 1 items in -50 bytes, with 3 left",
		"\x02\x04\x02" + float + "\x00\x00\x00":                                 "s: expected a string, found 1",
		"\x02\x02\x02\xff" + float + "\x00\x00\x00":                             "s: the string is not valid UTF-8",
		"\x02\x00\x00\x00\x00\x00\x00\x00\xf8\x7f" + "\x00\x00\x00":             "f: expected a number that a 64-bit float holds, found NaN or an infinity",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00" + float + "\x00\x00\x00": "t: expected a timestamp in ms of the years 1 to 9999, found -9223372036854775808",
		"\x02\x00" + float + "\x00\x00\x03\x04ab\x02\x04\x00":                   "",
		"\x02\x00" + float + "\x00\x00\x03\x08ab\x00":                           "malformed Avro at byte 14 of 17: a block of 2 items in 4 bytes, with 3 left",
	} {
		_, err := d.Decode(avroRecord([]byte(data)))
		var p *record.Poison
		if want == "" && err == nil {
			continue
		}
		if !errors.As(err, &p) || p.Error() != "stream s: "+want {
			t.Errorf("%q: %v, want %s", data, err, want)
		}
	}
}

// A recursive record may be of any depth in its schema, but not in its data.
func TestAvroNestedTooDeeply(t *testing.T) {
	d := avroDecoder(t, `{"type": "record", "name": "L", "fields": [{"name": "t", "type": "long"}, {"name": "next", "type": ["null", "L"]}]}`, `
streams:
  s:
    topic: events
    timestamp: t
    format: {type: avro, schema: payment.avsc}
    fields: {last: {type: timestamp, path: next.next.t}}
`)
	_, err := d.Decode(avroRecord([]byte(strings.Repeat("\x02\x02", 100_000))))
	if want := "stream s: malformed Avro at byte 20000 of 200000: values are nested too deeply"; fmt.Sprint(err) != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	events, err := d.Decode(avroRecord([]byte("\x02\x02\x04\x02\x06\x00")))
	if err != nil || shown(events[0]) != "1, , timestamp 3" {
		t.Errorf("values at the limit of nesting: events %v, error %v", events, err)
	}
	if events, err = d.Decode(avroRecord([]byte("\x02\x00"))); err != nil || shown(events[0]) != "1, , null" {
		t.Errorf("after a record that is nested too deeply: events %v, error %v", events, err)
	}
}

func TestAvroWithoutAllocations(t *testing.T) {
	d := avroDecoder(t, avroSchema, avroDefinitions)
	event := payment()
	event["dec"] = map[string]any{"bytes.decimal": big.NewRat(-123, 100)}
	event["tags"] = map[string]any{"color": map[string]any{"string": "red"}}
	rec := avroRecord(avroBytes(t, avroSchema, event))
	if n := testing.AllocsPerRun(100, func() { _, _ = d.Decode(rec) }); n != 0 {
		t.Errorf("%v allocations a record, want none", n)
	}
}

// FuzzAvro compares the scanner with another decoder: both accept the same records and read the same values.
func FuzzAvro(f *testing.F) {
	const schema = `{"type": "record", "name": "P", "fields": [
  {"name": "t", "type": "long"}, {"name": "s", "type": ["null", "string", "int"]}, {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
  {"name": "passed", "type": ["null", "P"]}, {"name": "m", "type": {"type": "map", "values": "string"}}, {"name": "f", "type": "double"},
  {"name": "a", "type": {"type": "array", "items": {"type": "array", "items": "int"}}}]}`
	d := avroDecoder(f, schema, `
streams:
  s:
    topic: events
    timestamp: {path: t, unit: ms}
    format: {type: avro, schema: payment.avsc}
    fields: {e: string, k: {type: string, path: m.k}, f: float}
`)
	parsed := avro.MustParse(schema)
	event := map[string]any{"t": int64(1), "s": nil, "e": "B", "passed": nil, "m": map[string]any{"k": "v", "l": "w"}, "f": 1.5, "a": []any{[]any{1, 2}}}
	f.Add(avroBytes(f, schema, event))
	inner := maps.Clone(event)
	inner["s"], event["passed"] = 5, inner
	f.Add(avroBytes(f, schema, event))
	f.Add([]byte("\x02\x00\x00\x00\x01\x0c\x02k\x02v\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := d.Decode(avroRecord(data))
		p, poisoned := errors.AsType[*record.Poison](err)
		if err != nil && !poisoned {
			t.Fatalf("%v is not poison", err)
		}
		var got map[string]any
		rest, gotErr := parsed.Decode(data, &got)
		switch whole := gotErr == nil && len(rest) == 0; {
		case err == nil && !whole:
			t.Fatalf("%q: accepted, but the other says %v with %d bytes left", data, gotErr, len(rest))
		case whole && poisoned && p.Reason == record.Malformed && !strings.Contains(p.Message, "a block "): // the other ignores their lengths
			t.Fatalf("%q: %v, but the other accepts it", data, err)
		case err != nil:
			return // malformed, or a value that its field does not take
		}
		want := fmt.Sprintf("string %v, ", got["e"])
		if k, ok := got["m"].(map[string]any)["k"]; ok {
			want += fmt.Sprintf("string %v, ", k)
		} else {
			want += "null, "
		}
		want += fmt.Sprintf("float %v", got["f"].(float64)+0)
		if text := shown(events[0]); !strings.HasSuffix(text, want) || events[0].Time != got["t"] {
			t.Fatalf("%q: %s at %d, want %s at %v", data, text, events[0].Time, want, got["t"])
		}
	})
}

// FuzzAvroSchema gives the parser of schemas anything, and whatever schema it reads any record: both are read in a time
// and memory that their lengths bound.
func FuzzAvroSchema(f *testing.F) {
	f.Add([]byte(avroSchema), avroBytes(f, avroSchema, payment()))
	for _, schema := range hostileSchemas {
		f.Add([]byte(schema.text), []byte("\x02\x00\x00"))
	}
	f.Fuzz(func(t *testing.T, schema, data []byte) {
		rows, err := record.NewAvroRows(schema)
		if err != nil {
			return
		}
		for at := 0; err == nil && at < len(data); {
			was := at
			if at, err = rows.Next(data, at); err == nil && at <= was {
				t.Fatalf("a record takes no bytes")
			}
		}
		columns := map[string]bool{}
		for i, column := range rows.Columns() {
			if columns[column] {
				t.Fatalf("two columns %q", column)
			}
			columns[column] = true
			rows.Cell(i)
		}
	})
}

// nestedSchema has records of ten fields of the next record each: a few lines, and 10^levels fields.
func nestedSchema(levels int, last string) string {
	inner := last
	for i := range levels {
		name := fmt.Sprintf("L%d", i)
		fields := []string{fmt.Sprintf(`{"name": "f0", "type": %s}`, inner)}
		named := fmt.Sprintf("%q", fmt.Sprintf("L%d", i-1))
		if i == 0 {
			named = last
		}
		for j := 1; j < 10; j++ {
			fields = append(fields, fmt.Sprintf(`{"name": "f%d", "type": %s}`, j, named))
		}
		inner = fmt.Sprintf(`{"type": "record", "name": %q, "fields": [%s]}`, name, strings.Join(fields, ", "))
	}
	return inner
}

func within(types string) string {
	return `{"type": "record", "name": "P", "fields": [{"name": "t", "type": "long"}, {"name": "x", "type": ` + types + `}]}`
}

// mapOfMany may be a record of 1,000 fields, or a map whose values may be of 1,000 types: each field may be any of these.
var mapOfMany = fmt.Sprintf(`[{"type": "map", "values": ["int"%s]}, {"type": "record", "name": "Many", "fields": [%s{"name": "last", "type": "int"}]}]`,
	strings.Repeat(`, "null"`, 999), func() (fields string) {
		for i := range 999 {
			fields += fmt.Sprintf(`{"name": "f%d", "type": "int"}, `, i)
		}
		return fields
	}())

// hostileSchemas are short, and would take more time or memory than there is if they were taken at their word.
var hostileSchemas = []struct{ name, field, text, data, want string }{
	{"empty records", "again: {type: int, path: t}", within(nestedSchema(20, `"null"`)), "\x02", ""},
	{"records", "again: {type: int, path: t}", within(nestedSchema(20, `"int"`)), "\x02", "malformed Avro at byte 1 of 1: the record ends within a number"},
	{"a record of itself", "again: {type: int, path: t}", within(`{"type": "record", "name": "R", "fields": [{"name": "a", "type": "R"}, {"name": "b", "type": "R"}]}`), "\x02",
		"malformed Avro at byte 1 of 1: values are nested too deeply"},
	{"items without bytes", "again: {type: int, path: t}", within(`{"type": "array", "items": ` + nestedSchema(20, `"null"`) + `}`), "\x02\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", ""},
	{"lists of lists", "again: {type: int, path: t}", within(`{"type": "record", "name": "R", "fields": [{"name": "a", "type": ` + strings.Repeat(`{"type": "array", "items": `, 1000) + `"R"` + strings.Repeat("}", 1000) + `}]}`),
		"\x02" + strings.Repeat("\x02", 1_000_000), "malformed Avro at byte 9990 of 1000001: values are nested too deeply"},
	{"a long decimal", "x: decimal", within(`{"type": "bytes", "logicalType": "decimal", "precision": 1000}`), "\x02\x80\x89\x7a" + strings.Repeat("\x7f", 1_000_000),
		"malformed Avro at byte 1000004 of 1000004: a decimal of 1000000 bytes"},
	{"a long fixed", "again: {type: int, path: t}", within(`{"type": "fixed", "name": "F", "size": 2147483647}`), "\x02", "malformed Avro at byte 1 of 1: a value of 2147483647 bytes, with 0 left"},
}

// Whoever writes records may register a schema that names more than there is. It is used like any other.
func TestHostileAvroSchemas(t *testing.T) {
	for _, c := range hostileSchemas {
		_, err := avroDecoder(t, c.text, `
streams:
  s: {topic: events, timestamp: t, format: {type: avro, schema: payment.avsc}, fields: {`+c.field+`}}
`).Decode(avroRecord([]byte(c.data)))
		want := c.want
		if want != "" {
			want = "stream s: " + want
		}
		if (err != nil || want != "") && fmt.Sprint(err) != want {
			t.Errorf("%s: got error %v, want %s", c.name, err, want)
		}
	}
}

// A schema that is none says what is wrong with it.
func TestBadAvroSchemas(t *testing.T) {
	field := func(of string) string {
		return `{"type": "record", "name": "R", "fields": [{"name": "f", ` + of + `}]}`
	}
	for text, want := range map[string]string{
		``:                                   "the schema cannot be read: it is not JSON: EOF",
		`"int" 1`:                            "the schema cannot be read: it is not JSON: something follows its end",
		`"int"`:                              "the schema is of type int; records are read from one of type record",
		`5`:                                  "the schema cannot be read: a type is missing, or neither a name, a list nor an object",
		`{}`:                                 "the schema cannot be read: a type is missing, or neither a name, a list nor an object",
		`{"type": "record"}`:                 `the schema cannot be read: invalid name of type record: ""`,
		`{"type": "record", "name": "a..b"}`: `the schema cannot be read: invalid name of type record: "a..b"`,
		`{"type": "record", "name": "R"}`:    "the schema cannot be read: record R has no list of fields",
		`{"type": "record", "name": "R", "fields": [5]}`:                                                          `the schema cannot be read: invalid name of a field of record R: ""`,
		`{"type": "record", "name": "R", "fields": [{"name": "a.b", "type": "int"}]}`:                             `the schema cannot be read: invalid name of a field of record R: "a.b"`,
		`{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}`: "the schema cannot be read: record R has field a twice",
		field(`"type": "S"`):                                                            "the schema cannot be read: unknown type: S",
		field(`"type": []`):                                                             "the schema cannot be read: a union has no branches",
		field(`"type": ["null", ["int"]]`):                                              "the schema cannot be read: a union is a branch of a union",
		field(`"type": {"type": "array"}`):                                              "the schema cannot be read: a type is missing, or neither a name, a list nor an object",
		field(`"type": {"type": "enum", "name": "E"}`):                                  "the schema cannot be read: enum E has no symbols",
		field(`"type": {"type": "enum", "name": "E", "symbols": "A"}`):                  "the schema cannot be read: symbols is not a list",
		field(`"type": {"type": "enum", "name": "E", "symbols": [1]}`):                  "the schema cannot be read: symbols is not a list of texts",
		field(`"type": {"type": "fixed", "name": "F", "size": -1}`):                     "the schema cannot be read: the size of fixed F is not a number of bytes",
		field(`"type": {"type": "fixed", "name": "R", "size": 1}`):                      "the schema cannot be read: type R is defined twice",
		field(`"type": "int", "aliases": "g"`):                                          "the schema cannot be read: aliases is not a list",
		field(`"type": "int", "default": 2147483648`):                                   "the schema cannot be read: the default of field f of R does not fit its type, int",
		field(`"type": ["null", "int"], "default": "x"`):                                "the schema cannot be read: the default of field f of R does not fit its type, union",
		field(`"type": "R", "default": {"f": 5}`):                                       "the schema cannot be read: the default of field f of R does not fit its type, record",
		field(`"type": "bytes", "default": "\u0100"`):                                   "the schema cannot be read: the default of field f of R does not fit its type, bytes",
		field(`"type": {"type": "fixed", "name": "F", "size": 2}, "default": "a"`):      "the schema cannot be read: the default of field f of R does not fit its type, fixed",
		field(`"type": {"type": "bytes", "logicalType": "decimal", "precision": 1001}`): "the schema cannot be read: a decimal has a precision of 1001 digits; at most 1000 are read",
		field(`"type": "null"`):                                                         "its records take no bytes",
		within(nestedSchema(20, `"int"`)):                                               "its records have more than 10000 fields",
		within(nestedSchema(3, `["int", `+strings.Repeat(`"null",`, 9)+`"string"]`)):    "its records have more than 10000 fields",
		within(mapOfMany): "its records are read by more than 200000 types",
	} {
		if _, err := record.NewAvroRows([]byte(text)); fmt.Sprint(err) != want {
			t.Errorf("%.80s: got error %v, want %s", text, err, want)
		}
	}
}

// A record's schema that lacks fields of the reader's has their defaults, of every type.
func TestAvroDefaults(t *testing.T) {
	reader := `{"type": "record", "name": "E", "namespace": "n", "fields": [{"name": "t", "type": "long"},
  {"name": "null", "type": ["int", "null"], "default": null}, {"name": "yes", "type": "boolean", "default": true},
  {"name": "text", "type": ["null", "string"], "default": "ä"}, {"name": "whole", "type": "long", "default": -5}, {"name": "part", "type": "double", "default": 1e-9},
  {"name": "dec", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "default": "\u00ff\u0000"},
  {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 1},
  {"name": "map", "type": {"type": "map", "values": "string"}, "default": {"k": "v"}},
  {"name": "in", "type": {"type": "record", "name": "In", "fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "In", "default": {"a": "deep"}}]}, "default": {"a": "x"}}]}`
	r, err := definition.LoadFS(fstest.MapFS{
		"d/test.yaml": {Data: []byte(`streams: {s: {topic: events, timestamp: t, format: {type: avro, framing: confluent, schema: s.avsc}, fields: {
  "null": int, yes: bool, text: string, whole: int, part: float, dec: {type: decimal, scale: 2}, day: timestamp, k: {type: string, path: map.k},
  a: {type: string, path: in.a}, b: {type: string, path: in.b.b.a}}}}`)},
		"d/s.avsc": {Data: []byte(reader)},
	}, "d/test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, rec := r.NewDecoder(), avroRecord([]byte("\x00\x00\x00\x00\x01\x0a"))
	_, err = d.Decode(rec)
	missing, ok := errors.AsType[*record.MissingSchema](err)
	if !ok {
		t.Fatal(err)
	}
	missing.Give(record.Registered{Type: "AVRO", Text: `{"type": "record", "name": "n.E", "fields": [{"name": "t", "type": "long"}]}`})
	events, err := d.Decode(rec)
	if err != nil {
		t.Fatal(err)
	}
	const want = "5, , null, bool true, string ä, int -5, float 1e-09, decimal -2.56, timestamp 86400000, string v, string x, string deep"
	if got := shown(events[0]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
