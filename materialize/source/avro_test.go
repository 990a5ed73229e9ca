package source

import (
	"bytes"
	"errors"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// goldenAvro is the golden table in an Avro container.
func goldenAvro(t testing.TB) []byte {
	t.Helper()
	const schema = `{"type": "record", "name": "Payment", "fields": [{"name": "id", "type": "string"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "who", "type": ["null", {"type": "record", "name": "Who", "fields": [{"name": "user", "type": ["null", "string"]}, {"name": "again", "type": ["null", "Who"]}]}]},
  {"name": "amount", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}]},
  {"name": "ok", "type": ["null", "boolean"]}, {"name": "tags", "type": {"type": "array", "items": "string"}},
  {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [{"name": "lat", "type": "double"}, {"name": "lon", "type": "float"}]}]}]}`
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, avro.MustParse(schema), ocf.WithCodec(ocf.DeflateCodec(-1)), ocf.WithBlockCount(2))
	if err != nil {
		t.Fatal(err)
	}
	who := func(user string) map[string]any {
		return map[string]any{"Who": map[string]any{"user": map[string]any{"string": user}, "again": nil}}
	}
	for _, row := range []map[string]any{
		{"id": "1", "at": time.UnixMilli(1769853600500), "who": who("a"), "amount": map[string]any{"bytes.decimal": big.NewRat(150, 100)}, "ok": map[string]any{"boolean": true},
			"tags": []any{"x"}, "place": map[string]any{"Place": map[string]any{"lat": 1.0, "lon": float32(2)}}},
		{"id": "2", "at": time.UnixMilli(1769853601000), "who": who(`b,"x"`), "amount": map[string]any{"bytes.decimal": big.NewRat(-2, 1)}, "ok": map[string]any{"boolean": false},
			"tags": []any{}, "place": nil},
		{"id": "3", "at": time.UnixMilli(1769853602000), "who": nil, "amount": nil, "ok": nil, "tags": []any{}, "place": nil},
	} {
		if err := w.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Columns are fields, also of nested records, but not lists, nor the fields of a record that
// contains itself.
func TestAvroColumns(t *testing.T) {
	f, err := Open(t.Context(), write(t, "in.avro", goldenAvro(t)), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := f.Table()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(table.Columns(), " "), "id at who.user amount ok place.lat place.lon"; got != want {
		t.Errorf("columns %s, want %s", got, want)
	}
}

// A truncated or damaged container ends with an error that names the row.
func TestBrokenAvro(t *testing.T) {
	whole := goldenAvro(t)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-5] ^= 1 // of the sync marker after the last block
	headerEnd := bytes.Index(whole, whole[len(whole)-16:]) + 16
	negative := slices.Insert(bytes.Clone(whole), headerEnd, 2, 1) // a block of 1 record and -1 bytes
	stream := goldenStream(t)
	for name, test := range map[string]struct {
		content []byte
		rows    int
		want    string
	}{
		"breaks off": {whole[:len(whole)-20], 2, "FILE: row 3: "}, "damaged": {damaged, 2, "FILE: row 3: "},
		"a negative size": {negative, 0, "FILE: row 1: it is damaged: "},
	} {
		path := write(t, "in.avro", test.content)
		got, err := eventsOf(t, path, stream)
		if want := strings.ReplaceAll(test.want, "FILE", path); len(got) != test.rows || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %d rows and error %v, want %d and %s", name, len(got), err, test.rows, want)
		}
	}
}

// A block may have no records.
func TestAvroEmptyBlock(t *testing.T) {
	whole := goldenAvro(t)
	sync := whole[len(whole)-16:]
	headerEnd := bytes.Index(whole, sync) + len(sync)
	empty := append([]byte{0, 0}, sync...) // 0 records, 0 bytes
	content := slices.Insert(bytes.Clone(whole), headerEnd, append(empty, empty...)...)
	for name, in := range map[string]io.Reader{"": bytes.NewReader(content), " that ends with its last bytes": iotest.DataErrReader(bytes.NewReader(append(content, empty...)))} {
		table, err := newAvro("in.avro", in)
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for ; err == nil; rows++ {
			_, err = table.Next()
		}
		if rows--; rows != 3 || err != io.EOF {
			t.Errorf("a file%s: %d rows and error %v, want 3 and the end", name, rows, err)
		}
	}
}

// A fixed is a text of its bytes, as in the records of a topic, or a UUID.
func TestAvroFixed(t *testing.T) {
	const schema = `{"type": "record", "name": "Row", "fields": [{"name": "code", "type": {"type": "fixed", "name": "Code", "size": 3}},
  {"name": "id", "type": ["null", {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"}]}]}`
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, avro.MustParse(schema))
	if err != nil {
		t.Fatal(err)
	}
	id := [16]byte{1, 2, 3, 15: 255}
	for _, row := range []map[string]any{{"code": [3]byte{'a', 'b', 'c'}, "id": map[string]any{"Id": id}}, {"code": [3]byte{'d'}, "id": nil}} {
		if err := w.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	table, err := newAvro("in.avro", &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][2]string{{"abc", "01020300-0000-0000-0000-0000000000ff"}, {"d\x00\x00", ""}} {
		cells, err := table.Next()
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{string(cells[0].Text), string(cells[1].Text)}; got != want || cells[0].Type != String {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Timestamps in nanoseconds have the type of the schema, as in the records of a topic.
func TestAvroNanoseconds(t *testing.T) {
	const schema = `{"type": "record", "name": "Row", "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
  {"name": "seen", "type": ["null", {"type": "long", "logicalType": "local-timestamp-nanos"}]}, {"name": "n", "type": "long"}]}`
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, avro.MustParse(schema))
	if err != nil {
		t.Fatal(err)
	}
	row := map[string]any{"at": int64(1769853600123456789), "seen": map[string]any{"long": int64(-1)}, "n": int64(5)}
	if err := errors.Join(w.Encode(row), w.Close()); err != nil {
		t.Fatal(err)
	}
	table, err := newAvro("in.avro", &out)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := table.Next()
	if err != nil {
		t.Fatal(err)
	}
	want := []Cell{
		{Type: Time, Text: []byte("2026-01-31T10:00:00.123456789Z"), Ms: 1769853600123}, {Type: Time, Text: []byte("1969-12-31T23:59:59.999999999Z"), Ms: -1},
		{Type: Number, Text: []byte("5")},
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A time of day is the number that it is in Avro, as in the records of a topic.
func TestAvroTimesOfDay(t *testing.T) {
	const schema = `{"type": "record", "name": "Row", "fields": [{"name": "millis", "type": {"type": "int", "logicalType": "time-millis"}},
  {"name": "micros", "type": ["null", {"type": "long", "logicalType": "time-micros"}]}]}`
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, avro.MustParse(schema))
	if err != nil {
		t.Fatal(err)
	}
	row := map[string]any{"millis": 1500 * time.Millisecond, "micros": map[string]any{"long.time-micros": 1500 * time.Microsecond}}
	if err := errors.Join(w.Encode(row), w.Close()); err != nil {
		t.Fatal(err)
	}
	table, err := newAvro("in.avro", &out)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := table.Next()
	if diff := cmp.Diff([]Cell{{Type: Number, Text: []byte("1500")}, {Type: Number, Text: []byte("1500")}}, cells); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// A local timestamp is read as one of UTC, as in the records of a topic, whatever the time zone of the machine.
func TestAvroLocalTimestamps(t *testing.T) {
	was := time.Local
	t.Cleanup(func() { time.Local = was })
	time.Local = time.FixedZone("east", 5*60*60)
	const schema = `{"type": "record", "name": "Row", "fields": [{"name": "at", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
  {"name": "seen", "type": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}], "default": null},
  {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 1}, "default": "a"},
  {"name": "made", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}`
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, avro.MustParse(schema))
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local) // the library writes what the local clock shows
	row := map[string]any{"at": noon, "seen": map[string]any{"long.local-timestamp-millis": noon}, "code": [1]byte{'b'}, "made": noon}
	if err := errors.Join(w.Encode(row), w.Close()); err != nil {
		t.Fatal(err)
	}
	table, err := newAvro("in.avro", &out)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := table.Next()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "b", "2026-01-31T07:00:00Z"} {
		if got := string(cells[i].Text); got != want || cells[i].Type == Time && time.UnixMilli(cells[i].Ms).UTC().Format(time.RFC3339) != want {
			t.Errorf("%s is %s and %d ms, want %s", table.Columns()[i], got, cells[i].Ms, want)
		}
	}
}
