package source

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/record"
)

// Events that are read in parts of any size, their lines and the first error equal those that are read one after
// another.
func TestParts(t *testing.T) {
	torn := errors.New("torn")
	stream := &record.Stream{Name: "s", Topic: "t", Format: record.JSON, ID: []string{"id"}, Timestamp: record.TimestampPath{Path: []string{"at"}, Form: record.TimeForm{Unit: "ms"}}}
	pieces := map[string][]string{
		CSV: {
			"1,5\n", "2,6\r\n", "\n", "\"3\n\n\",7\n", "\"4\"\"\",8\n", strings.Repeat("x", 30) + ",9\n", "\"", "1,a\n", "1,2,3\n", "\"5\",1",
		},
		NDJSON: {
			`{"id":1,"at":5}` + "\n", `{"id":"\n","at":6}` + "\r\n", "\n", "  \n", "{\n", `{"id":"` + strings.Repeat("x", 30) + `","at":9}` + "\n", `{"id":1}`,
			`{"topic":"t","value":{"id":1,"at":2}}` + "\n", `{"topic":"t","timestamp":7,"value":{"id":2,"at":2}}` + "\n",
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]string{CSV, NDJSON}).Draw(t, "format")
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces[format])).Draw(t, "text"), "")
		if format == CSV {
			text = "id,at\n" + text
		}
		end := rapid.SampledFrom([]error{io.EOF, torn}).Draw(t, "end")
		open := func() Divisible {
			f := File{Name: "in", Format: format, in: iotest.OneByteReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(end)))}
			s, err := f.Events(stream)
			if err != nil {
				t.Fatal(err)
			}
			return s.(Divisible)
		}
		whole := open()
		want := allOf(whole, decoderOf(whole, stream), stream)
		got := inParts(open(), rapid.IntRange(1, 60).Draw(t, "size"), stream)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q then %v (-whole +in parts):\n%s", text, end, diff)
		}
	})
}

// A part ends within a line only if that is too long.
func TestLineTooLongForAPart(t *testing.T) {
	long := strings.Repeat("x", maxLine+1)
	s := NewEvents("in", strings.NewReader("{}\n"+long+long)).(Divisible)
	var p Part
	if err := s.Cut(&p, 1); err != nil || string(p.text) != "{}\n" {
		t.Fatalf("error %v, the first part is %.10q", err, p.text)
	}
	if err := s.Cut(&p, 1); err != nil {
		t.Fatal(err)
	}
	r := s.NewPartReader()
	r.Reset(&p)
	if err := r.Next(&Event{}); fmt.Sprint(err) != "in:2: the line has more than 67108864 bytes" || cap(p.text) > maxLine/4*5 {
		t.Errorf("error %v, with %d bytes in memory", err, cap(p.text))
	}
}

func decoderOf(s Source, stream *record.Stream) *record.Decoder {
	return s.NewDecoder([]*record.Stream{stream})
}

// allOf returns the events of a source, and last its error.
func allOf(s Source, decoder *record.Decoder, stream *record.Stream) (got []string) {
	for {
		var e Event
		if err := s.Next(&e); err != nil {
			return append(got, err.Error())
		}
		r := record.Record{Timestamp: record.NoTime, Value: e.Value}
		r.Partition.Topic = stream.Topic
		decoded, err := decoder.Decode(&r)
		if err != nil {
			return append(got, s.At(e.Line, err).Error())
		}
		for _, d := range decoded {
			got = append(got, fmt.Sprintf("%d %s %d: %s", e.Line, e.Topic, e.RecordTime, d.ID))
		}
	}
}

// inParts returns the same, of a text that is read in parts.
func inParts(s Divisible, size int, stream *record.Stream) (got []string) {
	var part Part
	r := s.NewPartReader()
	for decoder := decoderOf(r, stream); ; {
		if err := s.Cut(&part, size); err != nil {
			return append(got, err.Error())
		}
		r.Reset(&part)
		some := allOf(r, decoder, stream)
		last := len(some) - 1
		if got = append(got, some[:last]...); some[last] != io.EOF.Error() {
			return append(got, some[last])
		}
	}
}
