package source

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// cells returns the cells of a row of a CSV.
func cells(texts ...string) (row []Cell) {
	for _, text := range texts {
		c := Cell{}
		if text != "" {
			c = Cell{Type: Untyped, Text: []byte(text)}
		}
		row = append(row, c)
	}
	return row
}

// The value of a cell reaches the record unchanged, or is refused.
func FuzzCell(f *testing.F) {
	for _, cell := range []string{"", "a", "\"\\\x00", "1.5", "01", "\xff", "true"} {
		f.Add(cell)
	}
	r := defined.Registry(f, `
streams: {s: {topic: t, timestamp: at, id: id, fields: {x: string, n: float}}}
features: {}
`)
	s, _ := r.Stream("s")
	decoder := r.NewDecoder()
	f.Fuzz(func(t *testing.T, cell string) {
		root, err := newTree(s, []string{"at", "id", "x", "n"})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := root.append(nil, cells("0", cell, cell, ""))
		if err != nil {
			t.Fatal(err)
		}
		events, err := decoder.Decode(&record.Record{Partition: state.Partition{Topic: "t"}, Timestamp: record.NoTime, Value: rec})
		if err == nil && (string(events[0].Values[0].Str) != cell || string(events[0].ID) != cell) {
			t.Errorf("%q became %s, which was decoded as %q", cell, rec, events[0].Values[0].Str)
		}
		if err != nil && !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%q became %s, which cannot be decoded: %v", cell, rec, err)
		}
		rec, err = root.append(nil, cells("0", "1", "", cell))
		if err == nil {
			if _, err := decoder.Decode(&record.Record{Partition: state.Partition{Topic: "t"}, Timestamp: record.NoTime, Value: rec}); err != nil && !strings.Contains(err.Error(), "64-bit float") {
				t.Errorf("%q became %s, which cannot be decoded: %v", cell, rec, err)
			}
		}
	})
}

// A text of digits is no number for a decimal in base64.
func TestDecimalInBase64(t *testing.T) {
	stream := defined.Registry(t, "streams: {s: {topic: t, timestamp: at, fields: {x: {type: decimal, encoding: base64}}}}\nfeatures: {}\n").Streams[0]
	root, err := newTree(stream, []string{"at", "x"})
	if err != nil {
		t.Fatal(err)
	}
	for typ, want := range map[CellType]string{Untyped: `{"at":5,"x":"1000"}`, String: `{"at":5,"x":"1000"}`, Number: `{"at":5,"x":1000}`} {
		if got, err := root.append(nil, []Cell{{Type: Number, Text: []byte("5")}, {Type: typ, Text: []byte("1000")}}); err != nil || string(got) != want {
			t.Errorf("a cell of type %d: got %s, error %v; want %s", typ, got, err, want)
		}
	}
}
