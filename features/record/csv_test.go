package record_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const csvFields = `
    timestamp: {path: e.t, unit: ms}
    id: id
    fields:
      str: string
      int: int
      float: float
      dec: {type: decimal, scale: 2}
      bool: bool
      at: timestamp
      day: {type: timestamp, unit: datetime}
      loc: location
`

const csvDefinitions = `
streams:
  s:
    topic: events
    match: kind == "x"
    format: {type: csv, columns: [kind, e.t, id, str, int, float, dec, bool, at, day, loc.lat, loc.lon, unread]}` + csvFields

// line is a line of the stream, with an event's cells from str on.
func line(cells string) *record.Record {
	rec := event("x,1700000000000,i1," + cells)
	rec.Timestamp = record.NoTime
	return rec
}

func TestCSVValues(t *testing.T) {
	d := defined.Registry(t, csvDefinitions).NewDecoder()
	// A column with the name of a location, beside its parts, does not matter.
	beside := defined.Registry(t, strings.Replace(csvDefinitions, "unread", "loc", 1)).NewDecoder()
	const nothing = "null null null null null null null null"
	for cells, want := range map[string]string{
		",,,,,,,,,":                       nothing,
		",,,,,,,,,\n":                     nothing,
		",,,,,,,,,unused\r\n":             nothing,
		`"",,,,,,,,,`:                     "string  null null null null null null null",
		`"a,""b""` + "\n" + `c",,,,,,,,,`: "string a,\"b\"\nc null null null null null null null",
		`"a""b","1",,,,,,,,"c""d"`:        `string a"b int 1 null null null null null null`,
		" a ,,,,,,,,,":                    "string  a  null null null null null null null",
		"123,,,,,,,,,":                    "string 123 null null null null null null null",
		"ä,-12,1e3,1.50,TRUE,1700000000000,2023-11-14 22:13:20,-90,180.0,": "string ä int -12 float 1000 decimal 1.5 bool true timestamp 1700000000000 timestamp 1700000000000 location -90,180",
		",1.0,0.1,-0,0,2023-11-14T22:13:20Z,,,,":                           "null int 1 float 0.1 decimal 0 bool false timestamp 1700000000000 null null",
		",,,,,,,1.5,-2.5,x":                                                "null null null null null null null location 1.5,-2.5",
		",,,,1,,,,,":                                                       "null null null null bool true null null null",
	} {
		for _, d := range []*record.Decoder{d, beside} {
			events, err := d.Decode(line(cells))
			if err != nil {
				t.Errorf("%q: %v", cells, err)
				continue
			}
			var got []string
			for _, v := range events[0].Values {
				got = append(got, show(v))
			}
			if text := strings.Join(got, " "); text != want || string(events[0].ID) != "i1" || events[0].Time != 1_700_000_000_000 {
				t.Errorf("%q: %s, id %s, time %d; want %s", cells, text, events[0].ID, events[0].Time, want)
			}
		}
	}
}

func TestCSVPoison(t *testing.T) {
	d := defined.Registry(t, csvDefinitions).NewDecoder()
	for _, c := range []struct {
		cells   string
		reason  record.Reason
		message string
	}{
		{",,,,,,,,", record.Malformed, "malformed CSV: expected 13 cells, found 12"},
		{",,,,,,,,,,", record.Malformed, "malformed CSV: expected 13 cells, found 14"},
		{",,,,,,,,,\n\n", record.Malformed, "malformed CSV: more than one line: the first ends at byte 28 of 29"},
		{`a"b,,,,,,,,,`, record.Malformed, "malformed CSV: a quote at byte 20 of an unquoted cell"},
		{`"ab,,,,,,,,,`, record.Malformed, "malformed CSV: the quote at byte 19 is not closed"},
		{`"""ab,,,,,,,,,`, record.Malformed, "malformed CSV: the quote at byte 19 is not closed"},
		{`"a"b,,,,,,,,,`, record.Malformed, "malformed CSV: expected a separator at byte 22, after a quoted cell"},
		{"\xff,,,,,,,,,", record.InvalidUTF8, "str: the string is not valid UTF-8"},
		{",x,,,,,,,,", record.WrongType, "int: expected a 64-bit integer, found a text"},
		{",1.5,,,,,,,,", record.WrongType, "int: expected a 64-bit integer, found 1.5"},
		{", 1,,,,,,,,", record.WrongType, "int: expected a 64-bit integer, found a text"},
		{",\"\",,,,,,,,", record.WrongType, "int: expected a 64-bit integer, found an empty text"},
		{",,0x10,,,,,,,", record.WrongType, "float: expected a number that a 64-bit float holds, found a text"},
		{",,Inf,,,,,,,", record.WrongType, "float: expected a number that a 64-bit float holds, found a text"},
		{",,1e999,,,,,,,", record.WrongType, "float: expected a number that a 64-bit float holds, found 1e999"},
		{",,,\"1,5\",,,,,,", record.WrongType, "dec: expected a 64-bit decimal with at most 2 digits after the decimal point, found a text"},
		{",,,,yes,,,,,", record.WrongType, "bool: expected a bool, found a text"},
		{",,,,,today,,,,", record.WrongType, "at: expected a timestamp (milliseconds since 1970, or RFC 3339), found a text"},
		{",,,,,,5,,,", record.WrongType, "day: expected a timestamp (date and time in UTC, such as 2026-01-31 23:59:59.999), found 5"},
		{",,,,,,,1,,", record.WrongType, `loc: expected a location ({"lat": -90 to 90, "lon": -180 to 180}), found an object without one of these: if they have other names, or may both be null, give their paths as ` + "`" + `lat` + "`" + ` and ` + "`" + `lon` + "`" + ` of the field`},
	} {
		_, err := d.Decode(line(c.cells))
		var p *record.Poison
		if !errors.As(err, &p) || p.Reason != c.reason || p.Stream != "s" || p.Error() != "stream s: "+c.message {
			t.Errorf("%q: %v; want %s: %s", c.cells, err, c.reason, c.message)
		}
	}
	for value, want := range map[string]string{
		"":                    "stream s: malformed CSV: expected 13 cells, found 1",
		"x,,,,,,,,,,,,":       "stream s: e.t: the event has no timestamp",
		"x,noon,,,,,,,,,,,":   "stream s: e.t: expected a timestamp in ms of the years 1 to 9999, found a text",
		"x,-1,\xff,,,,,,,,,,": "stream s: id: the string is not valid UTF-8",
	} {
		if _, err := d.Decode(event(value)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", value, err, want)
		}
	}
}

// A line of another kind belongs to no stream, and no value of a line remains in the slots for the next.
func TestCSVLineAfterLine(t *testing.T) {
	d := defined.Registry(t, csvDefinitions).NewDecoder()
	first := line("s,1,1,1,1,1,,1,1,")
	if _, err := d.Decode(first); err != nil {
		t.Fatal(err)
	}
	if events, err := d.Decode(event("y,,,,,,,,,,,,")); len(events) != 0 || err != nil {
		t.Errorf("a line that does not match the stream: got events %v, error %v; want neither", events, err)
	}
	events, err := d.Decode(line(",,,,,,,,,"))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range events[0].Values {
		if !v.IsNull() {
			t.Errorf("value %d is %s, want null: it is from an earlier line", i, show(v))
		}
	}
	rec := line(`"a ""quoted"" text",1,1,1,1,1,,1,1,`)
	if n := testing.AllocsPerRun(100, func() { _, _ = d.Decode(rec) }); n != 0 {
		t.Errorf("%v allocations a line, want none", n)
	}
}

// An event is the same written as a line or as a JSON object, also one given as JSON for a stream
// of CSV lines.
func TestCSVAndJSONAgree(t *testing.T) {
	lines := defined.Registry(t, csvDefinitions)
	objects := defined.Registry(t, "\nstreams:\n  s:\n    topic: events\n    match: kind == \"x\""+csvFields)
	decoders := []*record.Decoder{objects.NewDecoder(), record.NewJSONDecoder(lines.Streams), lines.NewDecoder()}
	rapid.Check(t, func(t *rapid.T) {
		cells, object := []string{"x"}, map[string]any{"kind": "x"}
		at := rapid.Int64Range(0, recorded).Draw(t, "t")
		object["e"] = map[string]any{"t": at}
		cells = append(cells, fmt.Sprint(at))
		for _, name := range []string{"id", "str"} {
			text := rapid.StringN(1, 10, -1).Draw(t, name)
			object[name] = text
			cells = append(cells, text)
		}
		for _, name := range []string{"int", "float", "dec"} {
			n := rapid.Int64Range(-1e6, 1e6).Draw(t, name)
			object[name] = n
			cells = append(cells, fmt.Sprint(n))
		}
		truth := rapid.Bool().Draw(t, "bool")
		object["bool"], object["at"], object["day"] = truth, at, "2023-11-14 22:13:20"
		lat, lon := rapid.Float64Range(-90, 90).Draw(t, "lat"), rapid.Float64Range(-180, 180).Draw(t, "lon")
		object["loc"] = map[string]any{"lat": lat, "lon": lon}
		cells = append(cells, fmt.Sprint(truth), fmt.Sprint(at), "2023-11-14 22:13:20", fmt.Sprint(lat), fmt.Sprint(lon), "")
		for i, name := range []string{"id", "str", "int", "float", "dec", "bool", "at", "day"} {
			if rapid.Bool().Draw(t, "lacks "+name) {
				cells[i+2] = ""
				delete(object, name)
			}
		}
		written, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var csvLine bytes.Buffer
		w := csv.NewWriter(&csvLine)
		if err := w.Write(cells); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		var texts []string
		for i, value := range [][]byte{written, written, csvLine.Bytes()} {
			events, err := decoders[i].Decode(&record.Record{Partition: state.Partition{Topic: "events"}, Timestamp: record.NoTime, Value: value})
			if err != nil {
				t.Fatalf("%s: %v", value, err)
			}
			text := fmt.Sprint(events[0].Time, " ", string(events[0].ID))
			for _, v := range events[0].Values {
				text += ", " + show(v)
			}
			texts = append(texts, text)
		}
		if texts[0] != texts[1] || texts[0] != texts[2] {
			t.Fatalf("the JSON %s and the CSV %s differ:\n%s", written, csvLine.Bytes(), strings.Join(texts, "\n"))
		}
	})
}

// FuzzCSV compares the scanner with encoding/csv, which reads everything that the scanner accepts in the same way. The
// scanner accepts everything that encoding/csv takes for one line with as many cells.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{
		"a,b,c", "a,b,c\r\n", `"a""b",,""`, "\"a\nb\",\"\",c\n", `a"b,c,d`, `"a"b,c,d`, `"a`, "a,b", "a,b,c,d", "", "\n", "a,b,c\n\n", "a,b,\xff", "a\r,b,c",
	} {
		f.Add([]byte(s))
	}
	d := defined.Registry(f, `
streams:
  s:
    topic: events
    match: 'a != "passed over" and b != "passed over"'
    timestamp: t
    format: {type: csv, columns: [a, b, t]}
    fields: {a: string, b: string}
`).NewDecoder()
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append(bytes.Clone(data), ",0"...)
		events, err := d.Decode(&record.Record{Partition: state.Partition{Topic: "events"}, Timestamp: record.NoTime, Value: data})
		var p *record.Poison
		if err != nil && !errors.As(err, &p) {
			t.Fatalf("%v is not poison", err)
		}
		if bytes.ContainsRune(data, '\r') {
			return // encoding/csv changes the ends of lines in quotes
		}
		reader := csv.NewReader(bytes.NewReader(data))
		reader.FieldsPerRecord = -1
		rows, refused := reader.ReadAll()
		one := refused == nil && len(rows) == 1 && len(rows[0]) == 3 && data[0] != '\n'
		if malformed := p != nil && p.Reason == record.Malformed; malformed == one {
			t.Fatalf("%q: error %v, but encoding/csv reads %q, error %v", data, err, rows, refused)
		}
		if err != nil || len(events) == 0 {
			return
		}
		var got []string
		for _, v := range events[0].Values {
			got = append(got, string(v.AppendText(nil)))
		}
		if !slices.Equal(got, rows[0][:2]) {
			t.Fatalf("%q: %q, want %q", data, got, rows[0])
		}
	})
}

// The options of fields hold for the cells of a line as for the members of an object.
func TestCSVAsItComes(t *testing.T) {
	const definitions = `
streams:
  s:
    topic: events
    format: {type: csv, columns: [t, user.id, n, wei, lat, geo.lng, point]}
    lenient: true
    timestamp: {path: t, layout: 02.01.2006 15:04:05, tz: Europe/Berlin}
    fields:
      user: {type: string, path: '["user.id"]', null_values: [\N]}
      n: {type: int, null_values: ["NULL"]}
      wei: {type: decimal, scale: 6, exponent: -18, round: true}
      home: {type: location, lat: lat, lon: geo.lng}
      work: {type: location, path: point, encoding: wkt}
features: {}
`
	d := defined.Registry(t, definitions).NewDecoder()
	for line, want := range map[string]string{
		`14.11.2023 23:13:20,u,1,12345678901234567890123,1.5,2,POINT(4 3)`: "s 0 : string u int 1 decimal 12345.678901 location 1.5,2 location 3,4\n",
		`14.11.2023 23:13:20,\N,NULL,,,,`:                                  "s 0 : null null null null null\n",
		`2023-11-14T22:13:19Z,u,"1",1e18,,,POINT EMPTY`:                    "s -1000 : string u int 1 decimal 1 null null\n",
		`14.11.2023 23:13:20,u,1,,1.5,,`:                                   "stream s: geo.lng: expected a longitude of the location home, a number from -180 to 180, found null",
	} {
		events, err := d.Decode(event(line))
		got := outline(events)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
