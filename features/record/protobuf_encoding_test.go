package record_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/weir-stream/weir/features/record"
)

// Encodings that libraries do not write, but Protocol Buffers allow, are read.
func TestProtobufNonCanonicalEncoding(t *testing.T) {
	d := protoDecoder(t, protoFiles())
	at := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("\x08\x01"))
	text := func(number protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), s)
	}
	integer := func(number protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), n)
	}
	group := func(number protowire.Number, body []byte) []byte {
		return protowire.AppendTag(append(protowire.AppendTag(nil, number, protowire.StartGroupType), body...), number, protowire.EndGroupType)
	}
	for name, test := range map[string]struct {
		parts []([]byte)
		want  string // the values that are not defaults
	}{
		"the last value counts":              {[][]byte{integer(5, 1), integer(5, 2)}, "i64 int 2"},
		"more bits than a kind has":          {[][]byte{integer(4, 1<<32|7), integer(6, 1<<32|8), integer(8, 1<<32|2)}, "i32 int 7, u32 int 8, s32 int 1"},
		"parts of a message":                 {[][]byte{text(19, "\x0a\x01a\x11\x00\x00\x00\x00\x00\x00\xf0\x3f"), text(19, "\x22\x03\x0a\x01b")}, "place location 1,0, town string b"},
		"the last of a oneof counts":         {[][]byte{text(25, "c"), text(26, "\x0a\x01s"), integer(27, 5)}, "account int 5"},
		"a message of a oneof":               {[][]byte{integer(27, 5), text(26, "\x0a\x01s")}, "shop string s"},
		"a value before its key":             {[][]byte{text(20, "\x12\x03red\x0a\x05color")}, "color string red"},
		"the last entry of a key":            {[][]byte{text(20, "\x0a\x05color\x12\x03red"), text(20, "\x0a\x05color\x12\x04blue")}, "color string blue"},
		"nothing of an earlier entry":        {[][]byte{text(21, "\x08\x03\x12\x03\x0a\x01a"), text(21, "\x08\x03\x12\x00")}, "third string "},
		"an entry without a value":           {[][]byte{text(20, "\x0a\x05color"), text(21, "\x08\x03")}, "color string , third string "},
		"an entry without a key":             {[][]byte{text(22, "\x10\x07")}, "no int 7"},
		"the last key, and parts of a value": {[][]byte{text(21, "\x08\x02\x12\x03\x0a\x01a\x08\x03\x12\x03\x0a\x01b")}, "third string b"},
		"unpacked and packed lists":          {[][]byte{integer(23, 1), text(23, "\x01\x02")}, ""},
		"unknown fields":                     {[][]byte{integer(999, 1), text(998, "x"), group(997, integer(5, 9))}, ""},
		"a field of another wire type":       {[][]byte{text(5, "x"), integer(3, 1), group(19, nil)}, ""},
		"an enum that the schema lacks":      {[][]byte{integer(18, math.MaxUint64), integer(18, 1)}, "status string PAID"},
		"a negative number of an enum":       {[][]byte{integer(18, math.MaxUint64)}, "status string NEGATIVE"},
		"a value that changes its kind":      {[][]byte{text(31, "\x0a\x0a\x0a\x04mail\x12\x02\x20\x01"), text(31, "\x0a\x0b\x0a\x04mail\x12\x03\x1a\x01m")}, "mail string m"},
		"a moment with unknown fields":       {[][]byte{text(1, "\x08\x01\x1a\x01x\x25\x00\x00\x00\x00")}, ""},
		"a decimal of many digits and zero":  {[][]byte{text(32, "\x0a\x02\x01\x00\x10\x05\x18\x03")}, "dec decimal 0.256"},
	} {
		data := append([]byte(nil), at...)
		for _, part := range test.parts {
			data = append(data, part...)
		}
		events, err := d.Decode(avroRecord(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, text := range strings.Split(named(events[0]), ", ")[2:] {
			if !strings.Contains(", "+protoDefaults+", ", ", "+text+", ") {
				got = append(got, text)
			}
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, ", "), test.want)
		}
	}
}

func TestProtobufPoison(t *testing.T) {
	d := protoDecoder(t, protoFiles())
	at := "\x0a\x02\x08\x01"
	for data, want := range map[string]string{
		at:                 "",
		"":                 "missing_timestamp",
		at + "\x1a\x05abc": "malformed Protobuf at byte 5 of 9: the record ends within a field",
		at + "\x1a":        "malformed Protobuf at byte 5 of 5: the record ends within a field",
		at + "\x28\x80":    "malformed Protobuf at byte 5 of 6: the record ends within a field",
		at + "\x80":        "malformed Protobuf at byte 4 of 5: the record ends within a field",
		at + "\x00":        "malformed Protobuf at byte 4 of 5: invalid field number",
		at + "\x2f":        "malformed Protobuf at byte 5 of 5: cannot parse reserved wire type",
		at + "\x2c":        "malformed Protobuf at byte 5 of 5: mismatching end group marker",
		at + "\x28" + strings.Repeat("\xff", 10) + "\x01":   "malformed Protobuf at byte 5 of 16: variable length integer overflow",
		at + "\x9a\x01\x05\x0a\x04ab":                       "malformed Protobuf at byte 6 of 11: the record ends within a field",
		at + "\x9a\x01\x04\x0a\x04ab":                       "malformed Protobuf at byte 8 of 11: the record ends within a field",
		at + "\xa2\x01\x03\x0a\x05c":                        "malformed Protobuf at byte 8 of 10: the record ends within a field",
		at + "\x82\x02\x02\x18\x80":                         "malformed Protobuf at byte 7 of 9: the record ends within a field",
		at + "\x82\x02\x03\x18\x80\x02":                     "malformed Protobuf at byte 10 of 10: a decimal of scale 256",
		at + "\x1a\x01\xff":                                 "str: the string is not valid UTF-8",
		at + "\x90\x01\x05":                                 "status: expected a string, found 5",
		at + "\x79\x00\x00\x00\x00\x00\x00\xf8\x7f":         "dbl: expected a number that a 64-bit float holds, found NaN or an infinity",
		"\x0a\x0a\x08" + strings.Repeat("\xff", 8) + "\x7f": "t: expected a timestamp in ms of the years 1 to 9999, found 9223372036854775807000",
	} {
		_, err := d.Decode(avroRecord([]byte(data)))
		var p *record.Poison
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%q: %v", data, err)
			}
		case !errors.As(err, &p) || p.Error() != "stream s: "+want && string(p.Reason) != want:
			t.Errorf("%q: %v, want %s", data, err, want)
		}
	}
}

// FuzzProtobuf compares the scanner with the library's generic decoder: the scanner accepts everything that the decoder
// accepts, and reads the same.
func FuzzProtobuf(f *testing.F) {
	const schema = `syntax = "proto3"; message P { int64 t = 1; string user = 2; sint32 n = 3; P in = 4; map<string, P> m = 5; oneof o { string a = 6; int64 b = 7; P c = 8; }
  repeated int32 list = 9; optional double d = 10; map<int32, string> k = 11; bool yes = 12; enum E { X = 0; Y = 1; } E e = 13; }`
	fields := []string{"user: {type: string, path: %suser}", "n: {type: int, path: %sn}", "a: {type: string, path: %sa}", "b: {type: int, path: %sb}", "yes: {type: bool, path: %syes}", "d: {type: float, path: %sd}"}
	var list []string
	for i, at := range []string{"", "in.", "c.", "m.x.", "c.in."} {
		for _, field := range fields {
			list = append(list, fmt.Sprintf("f%d_", i)+fmt.Sprintf(field, at))
		}
	}
	list = append(list, "k: {type: string, path: k.7}")
	d := protoDecoder(f, fstest.MapFS{
		"d/test.yaml": {Data: []byte("streams:\n  s:\n    topic: events\n    timestamp: {path: t, unit: ms}\n    format: {type: protobuf, schema: p.proto}\n    fields:\n      " +
			strings.Join(list, "\n      ") + "\n")},
		"d/p.proto": {Data: []byte(schema)},
	})
	p := protoMessages(f, schema).ByName("P")
	for _, json := range []string{
		`{"t": "1"}`, `{"t": "1", "user": "u", "in": {"user": "v", "c": {"n": 1}}, "c": {"in": {"a": "x"}}, "m": {"x": {"b": "5"}, "y": {}}, "k": {"7": "s"}}`,
		`{"t": "1", "list": [1, 2], "a": "a", "d": 0.5, "yes": true, "e": "Y", "m": {"x": {"d": 1}}}`,
	} {
		f.Add(protoBytes(f, p, json))
	}
	f.Add([]byte("\x08\x01\x2a\x04\x12\x00\x0a\x00\x2a\x05\x0a\x01x\x12\x00\x32\x01a\x38\x01\x42\x02\x22\x00\x42\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := d.Decode(avroRecord(data))
		var poison *record.Poison
		if err != nil && !errors.As(err, &poison) {
			t.Fatalf("%v is not poison", err)
		}
		m := dynamicpb.NewMessage(p)
		if unmarshalProto(data, m) != nil {
			return // the library checks texts and messages that the stream does not read
		}
		at := m.Get(p.Fields().ByName("t")).Int()
		if err != nil {
			if at != 0 && poison.Reason == record.Malformed {
				t.Fatalf("%q: %v, but the library accepts it", data, err)
			}
			return // such as a timestamp outside all years, or an infinite number
		}
		want := []string{fmt.Sprint(at), ""}
		for _, path := range []string{"", "in", "c", "m.x", "c.in"} {
			want = append(want, protoShown(m, path, "user", "n", "a", "b", "yes", "d")...)
		}
		text := "null"
		if k := m.Get(p.Fields().ByName("k")).Map().Get(protoreflect.ValueOfInt32(7).MapKey()); k.IsValid() {
			text = "string " + k.String()
		}
		if got := shown(events[0]); got != strings.Join(append(want, text), ", ") {
			t.Fatalf("%q:\n%s, want\n%s", data, got, strings.Join(append(want, text), ", "))
		}
	})
}

// unmarshalProto is proto.Unmarshal, which panics on keys of another type in an entry.
func unmarshalProto(data []byte, m proto.Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return proto.Unmarshal(data, m)
}

// protoShown shows fields of the message at a path as the library reads them.
func protoShown(m protoreflect.Message, path string, fields ...string) (texts []string) {
	there := true
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		if part == "x" {
			continue
		}
		fd := m.Descriptor().Fields().ByName(protoreflect.Name(part))
		if !there || !m.Has(fd) {
			there = false
			break
		}
		if !fd.IsMap() {
			m = m.Get(fd).Message()
			continue
		}
		entry := m.Get(fd).Map().Get(protoreflect.ValueOfString("x").MapKey())
		if there = entry.IsValid(); there {
			m = entry.Message()
		}
	}
	for _, name := range fields {
		fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		v := m.Get(fd)
		switch {
		case !there || fd.HasPresence() && !m.Has(fd):
			texts = append(texts, "null")
		case fd.Kind() == protoreflect.StringKind:
			texts = append(texts, "string "+v.String())
		case fd.Kind() == protoreflect.BoolKind:
			texts = append(texts, fmt.Sprint("bool ", v.Bool()))
		case fd.Kind() == protoreflect.DoubleKind:
			texts = append(texts, fmt.Sprint("float ", v.Float()+0))
		default:
			texts = append(texts, fmt.Sprint("int ", v.Int()))
		}
	}
	return texts
}
