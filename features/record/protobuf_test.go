package record_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
)

// protoSchema uses everything that Protocol Buffers have.
const protoSchema = `syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "confluent/type/decimal.proto";
import "confluent/meta.proto";
import "common/money.proto";

enum Status { OPEN = 0; PAID = 1; SETTLED = 1; option allow_alias = true; NEGATIVE = -1; }
message Place { string name = 1; double lat = 2; double lon = 3; Place within = 4; }
message Payment {
  google.protobuf.Timestamp t = 1;
  string id = 2;
  optional string str = 3;
  int32 i32 = 4; int64 i64 = 5; uint32 u32 = 6; uint64 u64 = 7; sint32 s32 = 8; sint64 s64 = 9;
  fixed32 f32 = 10; fixed64 f64 = 11; sfixed32 sf32 = 12; sfixed64 sf64 = 13;
  float single = 14; double dbl = 15; bool flag = 16; bytes raw = 17;
  Status status = 18;
  Place place = 19;
  map<string, string> tags = 20;
  map<int32, Place> places = 21;
  map<bool, int64> counts = 22;
  repeated int32 numbers = 23;
  repeated Place stops = 24;
  oneof with { string card = 25; Place shop = 26; int64 account = 27; }
  google.protobuf.Duration took = 28;
  google.protobuf.Int64Value wrapped = 29;
  google.protobuf.StringValue named = 30;
  google.protobuf.Struct extra = 31 [(confluent.field_meta) = { doc: "anything" }];
  confluent.type.Decimal dec = 32;
  common.Money money = 33;
  string unread = 1000;
}
`

const moneySchema = `syntax = "proto3"; package common; message Money { string currency = 1; int64 units = 2; }`

const protoStream = `
streams:
  s:
    topic: events
    timestamp: t
    id: id
    format: {type: protobuf, schema: payment.proto, imports: [protos/common/money.proto], message: Payment}
    fields:
`

// protoFields are the fields that are read, with their types.
var protoFields = []string{
	"str: string", "i32: int", "i64: int", "u32: int", "u64: {type: float}", "s32: int", "s64: int", "f32: int", "f64: {type: float}",
	"sf32: int", "sf64: int", "single: float", "dbl: float", "flag: bool", "raw: string", "status: string", "place: location",
	"town: {type: string, path: place.within.name}", "color: {type: string, path: tags.color}", "third: {type: string, path: places.3.name}",
	"yes: {type: int, path: counts.true}", "no: {type: int, path: counts.false}", "card: string", "shop: {type: string, path: shop.name}", "account: int",
	"took: {type: decimal, scale: 9}", "wrapped: int", "named: string", "level: {type: int, path: extra.risk.level}", "mail: {type: string, path: extra.mail}",
	"dec: {type: decimal, scale: 3}", "units: {type: int, path: money.units}",
}

func protoFiles() fstest.MapFS {
	return fstest.MapFS{
		"d/test.yaml":     {Data: []byte(protoStream + "      " + strings.Join(protoFields, "\n      ") + "\n")},
		"d/payment.proto": {Data: []byte(protoSchema)}, "d/protos/common/money.proto": {Data: []byte(moneySchema)},
	}
}

func protoDecoder(t testing.TB, files fstest.MapFS) *record.Decoder {
	t.Helper()
	r, err := definition.LoadFS(files, "d/test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return r.NewDecoder()
}

// protoMessages are the messages of a schema, compiled by the library.
func protoMessages(t testing.TB, schema string) protoreflect.MessageDescriptors {
	t.Helper()
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{
		"schema.proto": schema, "common/money.proto": moneySchema,
		"confluent/type/decimal.proto": `syntax = "proto3"; package confluent.type; message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }`,
		"confluent/meta.proto": `syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto"; message Meta { string doc = 1; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }`,
	})})}
	files, err := c.Compile(t.Context(), "schema.proto")
	if err != nil {
		t.Fatal(err)
	}
	return files[0].Messages()
}

// protoBytes encodes a message given as JSON.
func protoBytes(t testing.TB, d protoreflect.MessageDescriptor, json string) []byte {
	t.Helper()
	m := dynamicpb.NewMessage(d)
	if err := protojson.Unmarshal([]byte(json), m); err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// named shows the non-null values of an event by the names of their fields.
func named(e record.Event) string {
	texts := []string{fmt.Sprint(e.Time), string(e.ID)}
	for i, v := range e.Values {
		if !v.IsNull() {
			name, _, _ := strings.Cut(protoFields[i], ":")
			texts = append(texts, name+" "+show(v))
		}
	}
	return strings.Join(texts, ", ")
}

// Missing fields without presence have their default, the others are null.
const protoDefaults = "i32 int 0, i64 int 0, u32 int 0, u64 float 0, s32 int 0, s64 int 0, f32 int 0, f64 float 0, sf32 int 0, sf64 int 0, " +
	"single float 0, dbl float 0, flag bool false, raw string , status string OPEN"

func TestProtobufValues(t *testing.T) {
	d := protoDecoder(t, protoFiles())
	payment := protoMessages(t, protoSchema).ByName("Payment")
	for name, test := range map[string]struct{ json, want string }{
		"defaults": {`{"t": "2023-11-14T22:13:20Z", "id": "p1"}`, "1700000000000, p1, " + protoDefaults},
		"values": {`{"t": "2023-11-14T22:13:20.123999999Z", "id": "p1", "str": "ä", "i32": -2147483648, "i64": "-9223372036854775808", "u32": 4294967295,
		  "u64": "18446744073709551615", "s32": -2147483648, "s64": "9223372036854775807", "f32": 4294967295, "f64": "18446744073709551615", "sf32": -1, "sf64": "-1",
		  "single": 0.1, "dbl": -1e300, "flag": true, "raw": "w6Q=", "status": "PAID", "place": {"lat": -90, "lon": 180, "within": {"name": "Riga"}},
		  "tags": {"color": "red", "x": "y"}, "places": {"3": {"name": "third"}, "4": {}}, "counts": {"true": 7, "false": 8},
		  "numbers": [1, 2, 3], "stops": [{}, {"name": "a"}], "card": "c1", "took": "-1.5s", "wrapped": "9", "named": "n",
		  "extra": {"risk": {"level": 3, "why": ["a"]}, "mail": "a@b"}, "dec": {"value": "sC4=", "scale": 3}, "money": {"currency": "EUR", "units": "5"}, "unread": "x"}`,
			"1700000000123, p1, str string ä, i32 int -2147483648, i64 int -9223372036854775808, u32 int 4294967295, u64 float 1.8446744073709552e+19, " +
				"s32 int -2147483648, s64 int 9223372036854775807, f32 int 4294967295, f64 float 1.8446744073709552e+19, sf32 int -1, sf64 int -1, " +
				"single float 0.1, dbl float -1e+300, flag bool true, raw string ä, status string PAID, place location -90,180, town string Riga, " +
				"color string red, third string third, yes int 7, no int 8, card string c1, took decimal -1.5, wrapped int 9, named string n, " +
				"level int 3, mail string a@b, dec decimal -20.434, units int 5"},
		"present and empty": {`{"t": "1969-12-31T23:59:59.999Z", "id": "p1", "str": "", "shop": {}, "wrapped": "0", "named": "", "took": "0.000000001s", "dec": {}, "place": {},
		  "extra": {"mail": null}, "places": {"3": {}}, "counts": {"false": "0"}, "money": {}}`,
			"-1, p1, str string , " + protoDefaults + ", place location 0,0, third string , no int 0, shop string , took decimal 0.000000001, wrapped int 0, named string , dec decimal 0, units int 0"},
	} {
		events, err := d.Decode(avroRecord(protoBytes(t, payment, test.json)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := named(events[0]); got != test.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, test.want)
		}
	}
}

func TestBadProtobufDefinitions(t *testing.T) {
	for name, test := range map[string]struct{ format, schema, want string }{
		"no schema":         {"{type: protobuf, message: P}", "", "message needs schema: without a file, records name their schemas and messages"},
		"several messages":  {"{type: protobuf, schema: payment.proto}", `syntax = "proto3"; message A {} message B {}`, "the schema has several messages; set message to one of A, B"},
		"another message":   {"{type: protobuf, schema: payment.proto, message: Payments}", `syntax = "proto3"; message Payment {}`, `unknown message "Payments"; did you mean "Payment"?`},
		"no message":        {"{type: protobuf, schema: payment.proto}", `syntax = "proto3";`, "the schema has no message"},
		"no Protobuf":       {"{type: protobuf, schema: payment.proto}", "syntax = 'proto3';\nmessage {", "the schema cannot be read: payment.proto:2:9: syntax error: unexpected '{'"},
		"a missing import":  {"{type: protobuf, schema: payment.proto}", `syntax = "proto3"; import "other.proto"; message P {}`, "the schema cannot be read: it imports other.proto, which is not given"},
		"an unknown field":  {"{type: protobuf, schema: payment.proto}", `syntax = "proto3"; message P { int64 t = 1; string users = 2; }`, `stream "s" cannot read user: unknown field "user" in message P; did you mean "users"?`},
		"a field below":     {"{type: protobuf, schema: payment.proto}", `syntax = "proto3"; message P { int64 t = 1; string user = 2; string place = 3; }`, `stream "s" cannot read place.name: name is inside Protobuf's string, which has no fields`},
		"another type":      {"{type: protobuf, schema: payment.proto}", `syntax = "proto3"; message P { int64 t = 1; int32 user = 2; }`, `stream "s" cannot read user: a field of type string cannot be read from Protobuf's int32`},
		"a list":            {"{type: protobuf, schema: payment.proto}", `syntax = "proto3"; message P { int64 t = 1; repeated string user = 2; }`, `stream "s" cannot read user: a field of type string cannot be read from Protobuf's repeated string`},
		"a location":        {"{type: protobuf, schema: payment.proto}", `syntax = "proto3"; message P { int64 t = 1; string user = 2; string at = 3; }`, `stream "s" cannot read at.lat: lat is inside Protobuf's string, which has no fields`},
		"a map of messages": {"{type: protobuf, schema: payment.proto}", `syntax = "proto3"; message P { int64 t = 1; map<string, P> user = 2; }`, `stream "s" cannot read user: a field of type string cannot be read from Protobuf's map`},
	} {
		_, err := definition.LoadFS(fstest.MapFS{
			"d/test.yaml": {Data: []byte("streams:\n  s:\n    topic: events\n    timestamp: t\n    format: " + test.format +
				"\n    fields: {user: string, name: {type: string, path: place.name}, at: location}\n")},
			"d/payment.proto": {Data: []byte(test.schema)},
		}, "d/test.yaml")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s:\n%v, want\n%s", name, err, test.want)
		}
	}
}

// Texts may be decimals and timestamps, and durations are decimals with no more digits than needed.
func TestProtobufTextsAndDurations(t *testing.T) {
	d := protoDecoder(t, fstest.MapFS{
		"d/test.yaml": {Data: []byte("streams:\n  s:\n    topic: events\n    timestamp: {path: at, unit: rfc3339}\n    format: {type: protobuf, schema: p.proto}\n" +
			"    fields: {price: {type: decimal, scale: 2}, due: {type: timestamp, unit: rfc3339}, took: {type: decimal, scale: 1}}\n")},
		"d/p.proto": {Data: []byte(`syntax = "proto3"; import "google/protobuf/duration.proto";
message P { string at = 1; string price = 2; string due = 3; google.protobuf.Duration took = 4; }`)},
	})
	events, err := d.Decode(avroRecord([]byte("\x0a\x141970-01-01T00:00:01Z\x12\x0412.5\x1a\x141970-01-01T00:00:02Z\x22\x08\x08\x01\x10\x80\xca\xb5\xee\x01")))
	if err != nil || shown(events[0]) != "1000, , decimal 12.5, timestamp 2000, decimal 1.5" {
		t.Errorf("unexpected events %v, error %v", events, err)
	}
}

func TestProtobufWithoutAllocations(t *testing.T) {
	d := protoDecoder(t, protoFiles())
	rec := avroRecord(protoBytes(t, protoMessages(t, protoSchema).ByName("Payment"), `{"t": "2023-11-14T22:13:20Z", "id": "p1", "i64": "5", "dbl": 0.1,
	  "tags": {"color": "red"}, "places": {"3": {"name": "x"}}, "dec": {"value": "sC4=", "scale": 3}, "took": "1.5s", "extra": {"risk": {"level": 3}}}`))
	if n := testing.AllocsPerRun(100, func() { _, _ = d.Decode(rec) }); n != 0 {
		t.Errorf("%v allocations a record, want none", n)
	}
}

// Records with the ID of a schema name their message in it.
func TestProtobufOfARegistry(t *testing.T) {
	r, err := definition.LoadFS(fstest.MapFS{"d/test.yaml": {Data: []byte("streams:\n  s: {topic: events, timestamp: t, format: protobuf, fields: {user: string}}\n")}}, "d/test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := r.NewDecoder()
	const schema = `syntax = "proto3"; import "shop/user.proto"; message First { int64 t = 1; string user = 2; }
message Second { message Inner { message Most { int64 t = 2; string user = 1; } } int64 t = 1; shop.User person = 3; string user = 4; }`
	given := record.Registered{Type: "PROTOBUF", Text: schema, References: []record.Reference{{Name: "shop/user.proto", Text: `syntax = "proto3"; package shop; message User {}`}}}
	for _, test := range []struct{ data, want string }{
		{"\x00\x08\x01\x12\x01a", "1, , string a"},
		{"\x02\x00\x08\x01\x12\x01a", "1, , string a"},
		{"\x02\x02\x08\x01\x22\x01b", "1, , string b"},
		{"\x06\x02\x00\x00\x10\x01\x0a\x01c", "1, , string c"},
		{"\x02\x04\x08\x01", "the record's schema has no message 2"},
		{"\x04\x02\x02\x08\x01", "the record's schema has no message 1.1"},
		{"\x02\x01\x08\x01", "the record's schema has no message -1"},
		{"\x02", "expected the indexes of a message after the ID of its schema"},
		{"", "expected the indexes of a message after the ID of its schema"},
		{"\x01", "expected the indexes of a message after the ID of its schema"},
		{"\xfe\xff\xff\xff\x0f\x00", "expected the indexes of a message after the ID of its schema"},
	} {
		rec := avroRecord([]byte("\x00\x00\x00\x00\x07" + test.data))
		events, err := d.Decode(rec)
		if missing, ok := errors.AsType[*record.MissingSchema](err); ok {
			missing.Give(given)
			events, err = d.Decode(rec)
		}
		got := fmt.Sprint(err)
		if err == nil {
			got = shown(events[0])
		}
		if strings.TrimPrefix(got, "stream s: ") != test.want {
			t.Errorf("%q: %s, want %s", test.data, got, test.want)
		}
	}
	rec := avroRecord([]byte("\x00\x00\x00\x00\x08\x00"))
	for _, test := range []struct {
		given record.Registered
		want  string
	}{
		{record.Registered{Type: "AVRO", Text: `"string"`}, "schema 8 cannot be used: it is of type AVRO, and the stream's format is protobuf"},
		{record.Registered{Type: "PROTOBUF", Text: `syntax = "proto3"; import "a.proto"; message M {}`}, "schema 8 cannot be used: the schema cannot be read: it imports a.proto, which is not given"},
	} {
		_, err := d.Decode(rec)
		missing, ok := errors.AsType[*record.MissingSchema](err)
		if !ok {
			t.Fatal(err)
		}
		missing.Give(test.given)
		if _, err := d.Decode(rec); fmt.Sprint(err) != "stream s: "+test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
		missing.Forget()
	}
}

// Defaults declared in proto2 replace missing fields; groups are messages.
func TestProto2(t *testing.T) {
	files := fstest.MapFS{
		"d/test.yaml": {Data: []byte("streams:\n  s:\n    topic: events\n    timestamp: t\n    format: {type: protobuf, schema: p.proto}\n" +
			"    fields: {user: string, country: string, n: int, f: float, b: bool, e: string, raw: string, u: int, item: {type: string, path: item.sku}}\n")},
		"d/p.proto": {Data: []byte(`syntax = "proto2"; message P { required int64 t = 1; optional string user = 2; optional string country = 3 [default = "DE"];
  optional sint32 n = 4 [default = -7]; optional float f = 5 [default = 0.1]; optional bool b = 6 [default = true]; enum E { A = 1; B = 2; } optional E e = 7 [default = B];
  optional bytes raw = 8 [default = "r"]; optional fixed32 u = 9 [default = 5]; optional group Item = 10 { optional string sku = 1; } }`)},
	}
	d := protoDecoder(t, files)
	for data, want := range map[string]string{
		"\x08\x01":                         "1, , null, string DE, int -7, float 0.1, bool true, string B, string r, int 5, null",
		"\x08\x01\x30\x00\x38\x01\x1a\x00": "1, , null, string , int -7, float 0.1, bool false, string A, string r, int 5, null",
		"\x08\x01\x53\x0a\x01x\x54":        "1, , null, string DE, int -7, float 0.1, bool true, string B, string r, int 5, string x",
		"\x08\x01\x53\x0a\x01x":            "malformed Protobuf at byte 6 of 6: the record ends within a group",
	} {
		events, err := d.Decode(avroRecord([]byte(data)))
		got := fmt.Sprint(err)
		if err == nil {
			got = shown(events[0])
		}
		if strings.TrimPrefix(got, "stream s: ") != want {
			t.Errorf("%q:\n%s, want\n%s", data, got, want)
		}
	}
}
