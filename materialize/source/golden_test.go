package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

const golden = "id,at,who.user,amount,ok,place.lat,place.lon,note\n" +
	"1,2026-01-31 10:00:00.5,a,1.50,True,1,2,\n" +
	"2,2026-01-31 10:00:01,\"b,\"\"x\"\"\",-2,0,,,any\n" +
	"3,2026-01-31 10:00:02,,,,,,\n"

const goldenLines = `{"id":"1","at":"2026-01-31 10:00:00.5","who":{"user":"a"},"amount":1.50,"ok":true,"place":{"lat":1,"lon":2}}

{"id":"2","at":"2026-01-31 10:00:01","who":{"user":"b,\"x\""},"amount":-2,"ok":false,"place":null}
{"id":"3","at":"2026-01-31 10:00:02","who":null,"amount":null,"ok":null,"place":null}
`

func goldenStream(t testing.TB) *record.Stream {
	t.Helper()
	r := defined.Registry(t, `
streams:
  pay:
    topic: payments
    timestamp: {path: at, unit: datetime}
    id: id
    fields: {user: {type: string, path: who.user}, amount: {type: decimal, scale: 2}, ok: bool, place: location}
features: {}
`)
	return r.Streams[0]
}

// packed returns the contents of a file of that name with a text.
func packed(t testing.TB, name, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch filepath.Ext(name) {
	case ".gz":
		w = gzip.NewWriter(&b)
	case ".zst":
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	default:
		return []byte(text)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// goldenParquet is the golden table in a Parquet file.
func goldenParquet(t testing.TB) []byte {
	t.Helper()
	type row struct {
		ID  string `parquet:"id"`
		At  int64  `parquet:"at,timestamp(millisecond)"`
		Who *struct {
			User *string `parquet:"user,optional"`
		} `parquet:"who,optional"`
		Amount *int64 `parquet:"amount,optional,decimal(2:18)"`
		OK     *bool  `parquet:"ok,optional"`
		Place  *struct {
			Lat float64 `parquet:"lat"`
			Lon float64 `parquet:"lon"`
		} `parquet:"place,optional"`
		Tags []string `parquet:"tags,list"`
	}
	a, b, yes, no, amounts := "a", `b,"x"`, true, false, []int64{150, -200}
	who := func(s *string) *struct {
		User *string `parquet:"user,optional"`
	} {
		return &struct {
			User *string `parquet:"user,optional"`
		}{s}
	}
	rows := []row{
		{ID: "1", At: 1769853600500, Who: who(&a), Amount: &amounts[0], OK: &yes, Tags: []string{"x", "y"}},
		{ID: "2", At: 1769853601000, Who: who(&b), Amount: &amounts[1], OK: &no},
		{ID: "3", At: 1769853602000},
	}
	rows[0].Place = &struct {
		Lat float64 `parquet:"lat"`
		Lon float64 `parquet:"lon"`
	}{1, 2}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.MaxRowsPerRowGroup(2))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventsOf returns the decoded events of a file, with their lines.
func eventsOf(t testing.TB, path string, stream *record.Stream) (got []string, err error) {
	t.Helper()
	f, err := Open(t.Context(), path, nil, "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := f.Events(stream)
	if err != nil {
		return nil, err
	}
	decoder := s.NewDecoder([]*record.Stream{stream})
	for {
		var e Event
		err := s.Next(&e)
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		rec := record.Record{Timestamp: record.NoTime, Value: e.Value}
		rec.Partition.Topic = stream.Topic
		decoded, err := decoder.Decode(&rec)
		if err != nil {
			return got, s.At(e.Line, err)
		}
		for _, d := range decoded {
			text := fmt.Sprintf("%d: %s %d", e.Line, d.ID, d.Time)
			for _, v := range d.Values {
				text += " " + string(v.AppendText(nil))
			}
			got = append(got, text)
		}
	}
}

// Every format gives the same events.
func TestFormats(t *testing.T) {
	stream := goldenStream(t)
	want := []string{"1769853600500 a 1.5 true 1,2", `1769853601000 b,"x" -2 false `, "1769853602000    "}
	for name, of := range map[string]struct {
		text  string
		lines []int
	}{
		"in.csv": {golden, []int{2, 3, 4}}, "in.csv.gz": {golden, []int{2, 3, 4}}, "in.csv.zst": {golden, []int{2, 3, 4}},
		"marked.csv": {mark + "\"id\"" + golden[len("id"):], []int{2, 3, 4}}, "marked.ndjson": {mark + goldenLines, []int{1, 3, 4}},
		"in.ndjson": {goldenLines, []int{1, 3, 4}}, "in.jsonl.gz": {goldenLines, []int{1, 3, 4}}, "in.ndjson.zst": {goldenLines, []int{1, 3, 4}},
		"in.parquet": {string(goldenParquet(t)), []int{1, 2, 3}},
		"in.avro":    {string(goldenAvro(t)), []int{1, 2, 3}},
	} {
		got, err := eventsOf(t, write(t, name, packed(t, name, of.text)), stream)
		if err != nil {
			t.Fatal(err)
		}
		var placed []string
		for i, line := range of.lines {
			placed = append(placed, fmt.Sprintf("%d: %d %s", line, i+1, want[i]))
		}
		if diff := cmp.Diff(placed, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Parquet types of other programs are read, column by column; lists are skipped.
func TestParquetTypes(t *testing.T) {
	for name, want := range map[string]string{
		"types.parquet": `text dictionary int32 int64 uint32 uint64 float32 double bool decimal small_decimal ms us ns date group.inner group.lat
"a" "x" -1 -9223372036854775808 0 0 0.5 0.1 true -1.5 1.5 2026-01-31T23:59:59.123Z=1769903999123 2026-01-31T23:59:59.123456Z=1769903999123 2026-01-31T23:59:59.123456Z=1769903999123 2026-01-31T00:00:00Z=1769817600000 "i" 1.5
- - - - - - - - - - - - - - - - -
"c\"\n" "x" 2147483647 9223372036854775807 4294967295 18446744073709551615 1e-07 - false 1234567890123456789012e-2 -0.1 1969-12-31T23:59:59.999Z=-1 2026-01-31T23:59:59.123456Z=1769903999123 2026-01-31T23:59:59.123456Z=1769903999123 1969-12-31T00:00:00Z=-86400000 - -1
`,
		"hive.parquet": `ns text
2026-01-31T23:59:59.123456Z=1769903999123 "a"
- -
2026-01-31T23:59:59.123456Z=1769903999123 "c\"\n"
`,
	} {
		f, err := Open(t.Context(), filepath.Join("testdata", name), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		table, err := f.Table()
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(table.Columns(), " ") + "\n"
		for {
			row, err := table.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, c := range row {
				switch c.Type {
				case Null:
					texts = append(texts, "-")
				case String:
					texts = append(texts, fmt.Sprintf("%q", c.Text))
				case Time:
					texts = append(texts, fmt.Sprintf("%s=%d", c.Text, c.Ms))
				default:
					texts = append(texts, string(c.Text))
				}
			}
			got += strings.Join(texts, " ") + "\n"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Every bad file has its message, with its line or row.
func TestBadFiles(t *testing.T) {
	stream := goldenStream(t)
	type typed struct {
		ID string  `parquet:"id"`
		At string  `parquet:"at"`
		U  float64 `parquet:"who.user"`
		A  string  `parquet:"amount"`
		OK string  `parquet:"ok"`
		La float64 `parquet:"place.lat"`
		Lo float64 `parquet:"place.lon"`
	}
	bad := func(rows ...typed) string {
		var out bytes.Buffer
		if err := parquet.Write(&out, rows); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	whole := string(goldenParquet(t))
	for _, c := range []struct{ name, content, want string }{
		{"in.txt", "", "FILE is none of .csv, .ndjson, .avro and .parquet, the first two also .gz or .zst"},
		{"in.avro.gz", "", "FILE is none of .csv, .ndjson, .avro and .parquet, the first two also .gz or .zst"},
		{"in.avro", "Obj", "FILE: this is not an Avro container file, or not all of one: it ends early"},
		{"in.parquet.gz", "", "FILE is none of .csv, .ndjson, .avro and .parquet, the first two also .gz or .zst"},
		{"in.csv.gz", golden, "FILE: gzip: invalid header"},
		{"in.csv.zst", golden, "FILE:1: invalid input: magic number mismatch"},
		{"in.csv.gz", string(packed(t, "x.gz", golden)[:60]), "FILE:1: the compressed data ends early: this is not all of the file"},
		{"in.csv.zst", string(packed(t, "x.zst", golden)[:60]), "FILE:1: the compressed data ends early: this is not all of the file"},
		{"in.csv.gz", "", "FILE: the compressed data ends early: this is not all of the file"},
		{"in.csv", "", "FILE:1: the file is empty; its first line must name the columns"},
		{"in.csv", "at;user\n1;a\n", `FILE:1: it has one column, "at;user": separate columns with commas`},
		{"in.csv", "at\tuser\n1\ta\n", `FILE:1: it has one column, "at\tuser": separate columns with commas`},
		{"in.csv", "\xff\xfea\x00,\x00b\x00\n\x00", "FILE:1: the text is in UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8"},
		{"in.ndjson", "\xfe\xff\x00{\x00}\x00\n", "FILE:1: the text is in UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8"},
		{"in.csv", "a,b,a\n", `FILE:1: column "a" is repeated`},
		{"in.csv", strings.Replace(golden, "amount", "amuont", 1), `FILE:1: field amount of pay: unknown column "amount"; did you mean "amuont"?`},
		{"in.csv", golden + "4,5\n", "FILE:5: wrong number of fields"},
		{"in.csv", golden + "4,\"5\n", `FILE:5: extraneous or missing " in quoted-field`},
		{"in.csv", golden + "4,\"5" + strings.Repeat("x", maxLine), "FILE:5: the record has more than 67108864 bytes; perhaps a quote is not closed"},
		{"in.csv", golden + "4,2026-01-31 10:00:03,a,x,,,,\n", "FILE:5: stream pay: amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string that is not one"},
		{"in.ndjson", goldenLines + "{", "FILE:5: stream pay: malformed JSON at byte 1 of 1"},
		{"in.ndjson", strings.Repeat("x", maxLine+1), "FILE:1: the line has more than 67108864 bytes"},
		{"in.ndjson", `{"topic":"payments","value":{"at":"2026-01-31 10:00:00"}}` + "\n" + goldenLines,
			`FILE:2: expected an envelope as on the first line: an object of "topic", "key", "value" and perhaps "timestamp", and nothing else`},
		{"in.parquet", "PAR1", "FILE: this is not a Parquet file, or not all of one: reading magic footer of parquet file: readat FILE: negative offset (read: 0)"},
		{"in.parquet", whole[:len(whole)/2], "FILE: this is not a Parquet file, or not all of one: invalid magic footer of parquet file: \"\\x00\\x00\\x00\\x19\""},
		{"in.parquet", bad(), `FILE: no rows`},
		{"in.parquet", bad(typed{At: "2026-01-31 10:00:03", U: 1.5, A: "1", OK: "1"}), "FILE: row 1: stream pay: who.user: expected a string, found 1.5"},
		{"in.parquet", bad(typed{At: "2026-01-31 10:00:03", A: "1", OK: "1"}, typed{At: "2026-01-31 10:00:03", A: "1", OK: "no"}), "FILE: row 2: stream pay: ok: expected a bool, found a string"},
		{"in.parquet", bad(typed{At: "31.1.", A: "1", OK: "1"}), "FILE: row 1: stream pay: at: expected a timestamp of the years 1 to 9999 (date and time in UTC, such as 2026-01-31 23:59:59.999), found a string"},
	} {
		path := write(t, c.name, []byte(c.content))
		got, err := eventsOf(t, path, stream)
		if err == nil && len(got) == 0 {
			err = fmt.Errorf("%s: no rows", path)
		}
		if want := strings.ReplaceAll(c.want, "FILE", path); fmt.Sprint(err) != want {
			t.Errorf("%s\ngot  %v\nwant %s", c.name, err, want)
		}
	}
}

// A line with an envelope has the record's value, topic and time.
func TestEnvelopes(t *testing.T) {
	in := `{"topic":"a","key":"k","value":{"x": 1}}
{"topic":"b","key":null,"value":{"x":2},"timestamp":1700000000000,"partition":1,"offset":7,"headers":[]}`
	s := NewEvents("in.ndjson", strings.NewReader(in))
	var got []string
	var e Event
	for s.Next(&e) == nil {
		got = append(got, fmt.Sprintf("%s %s %d %d", e.Topic, e.Value, e.RecordTime, e.Line))
	}
	if want := []string{fmt.Sprintf(`a {"x": 1} %d 1`, int64(record.NoTime)), `b {"x":2} 1700000000000 2`}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for line, want := range map[string]bool{in: true, `{"topic":"a","value":1}` + "\n": true, `{"topic":"a","user":1,"value":{}}`: false, `{"value":{}}`: false, "": false, "\n\n" + in: true, mark + in: true} {
		f, err := Open(t.Context(), Stdin, strings.NewReader(line), NDJSON)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Enveloped(); got != want {
			t.Errorf("%q is an envelope: %v, want %v", line, got, want)
		}
	}
}

// A table of lines has the members of the first.
func TestJSONTable(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"b":"x","a":1.0,"c":true,"d":null}` + "\n" + `{"a":2}`, "b a c d|2 x,3 1.0,4 true,0 |0 ,3 2,0 ,0 |EOF"},
		{`{"a":1}` + "\n\n" + `{"b":1}`, `a|3 1|in:3: the first line has no member "b": it must have those of all lines`},
		{`{"a":[1]}`, `in:1: member "a": expected a string, a number, true, false or null, found a list or an object`},
		{`{"a":1,"a":2}`, `in:1: column "a" is repeated`},
		{`[1]`, "in:1: expected a JSON object"},
		{`{"a":1`, "in:1: malformed JSON"},
		{`{"a":1} x`, "in:1: malformed JSON: the line continues after the object"},
		{"", "in:1: the file is empty; its first line must have all columns"},
	} {
		table, err := newJSONTable("in", strings.NewReader(c.in))
		got := ""
		if err == nil {
			got = strings.Join(table.Columns(), " ") + "|"
			for {
				row, next := table.Next()
				if next != nil {
					err = next
					break
				}
				var texts []string
				for _, c := range row {
					texts = append(texts, fmt.Sprintf("%d %s", c.Type, c.Text))
				}
				got += strings.Join(texts, ",") + "|"
			}
		}
		if got += fmt.Sprint(err); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.in, got, c.want)
		}
	}
}
