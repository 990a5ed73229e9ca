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

// decode decodes a row of a table with some columns.
func decode(t *testing.T, stream *record.Stream, columns []string, row []Cell) ([]record.Event, error) {
	t.Helper()
	root, err := newTree(stream, columns)
	if err != nil {
		t.Fatal(err)
	}
	var c decodedCells
	decoder := c.newDecoder(&csvTable{columns: columns}, root, []*record.Stream{stream})
	c.set(row)
	return decoder.Decode(&record.Record{Partition: state.Partition{Topic: stream.Topic}, Timestamp: record.NoTime})
}

// The value of a cell reaches the event unchanged, or is refused.
func FuzzCell(f *testing.F) {
	for _, cell := range []string{"", "a", "\"\\\x00", "1.5", "01", "\xff", "true"} {
		f.Add(cell)
	}
	r := defined.Registry(f, `
streams: {s: {topic: t, timestamp: at, id: id, fields: {x: string, n: float}}}
features: {}
`)
	s, _ := r.Stream("s")
	columns := []string{"at", "id", "x", "n"}
	f.Fuzz(func(t *testing.T, cell string) {
		events, err := decode(t, s, columns, cells("0", cell, cell, ""))
		if err == nil && (string(events[0].Values[0].Str) != cell || string(events[0].ID) != cell) {
			t.Errorf("%q was decoded as %q", cell, events[0].Values[0].Str)
		}
		if err != nil && !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%q cannot be decoded: %v", cell, err)
		}
		if _, err := decode(t, s, columns, cells("0", "1", "", cell)); err != nil && !strings.Contains(err.Error(), "64-bit float") {
			t.Errorf("%q cannot be decoded: %v", cell, err)
		}
	})
}

// A text of digits is no number for a decimal in base64.
func TestDecimalInBase64(t *testing.T) {
	stream := defined.Registry(t, "streams: {s: {topic: t, timestamp: at, fields: {x: {type: decimal, encoding: base64}}}}\nfeatures: {}\n").Streams[0]
	columns := []string{"at", "x"}
	for typ, number := range map[CellType]bool{Untyped: false, String: false, Number: true} {
		events, err := decode(t, stream, columns, []Cell{{Type: Number, Text: []byte("5")}, {Type: typ, Text: []byte("1000")}})
		if number {
			if err == nil || !strings.Contains(err.Error(), "found 1000") {
				t.Errorf("a number: got %+v, error %v; want none", events, err)
			}
			continue
		}
		if err != nil || events[0].Values[0].Num != 0xd74d34-1<<24 {
			t.Errorf("a cell of type %d: got %+v, error %v; want the bytes d74d34", typ, events, err)
		}
	}
}
