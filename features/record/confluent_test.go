package record_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

// Records written by Confluent's own serializers for Python are read; testdata/confluent.py made
// the file.
func TestRecordsOfConfluentsSerializers(t *testing.T) {
	var golden struct {
		Schemas    map[string]string
		Avro       []string
		JSONSchema []string `json:"json_schema"`
		Protobuf   []string
		Proto      string // their schema
	}
	content, err := os.ReadFile("testdata/confluent.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &golden); err != nil {
		t.Fatal(err)
	}
	d := defined.Registry(t, `
streams:
  avro:
    topic: events
    timestamp: at
    id: id
    format: avro
    fields:
      user: string
      amount: decimal
      score: float
      small: float
      ok: bool
      status: string
      day: timestamp
      color: {type: string, path: tags.color}
      place: location
  protobuf:
    topic: messages
    timestamp: at
    id: id
    format: protobuf
    fields: {user: string, score: float, status: string, color: {type: string, path: tags.color}, card: string, account: int, delta: int}
  json: {topic: other, timestamp: at, format: json_schema, fields: {user: string}}
`).NewDecoder()
	decode := func(rec *record.Record) string {
		t.Helper()
		for {
			events, err := d.Decode(rec)
			if missing, ok := errors.AsType[*record.MissingSchema](err); ok {
				given := record.Registered{Type: "AVRO", Text: golden.Schemas[strconv.Itoa(int(missing.ID))]}
				if given.Text == "" {
					given = record.Registered{Type: "PROTOBUF", Text: golden.Proto}
				}
				missing.Give(given)
				continue
			}
			if err != nil || len(events) != 1 {
				t.Fatal(events, err)
			}
			return shown(events[0])
		}
	}
	recordOf := func(text string) *record.Record {
		t.Helper()
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return avroRecord(data)
	}
	want := []string{
		"1769903999999, 12345678-9abc-def0-0102-030405060708, string ä, decimal -12.3, float 0.1, float 0.25, bool true, string PAID, timestamp 1769817600000, string red, location -90,180",
		"-1000, 00000000-0000-0000-0000-000000000000, null, decimal 9999999999.99, float -1e+300, float -0.5, bool false, string OPEN, timestamp -86400000, null, null",
	}
	if len(golden.Avro) != 4 || len(golden.Schemas) != 2 {
		t.Errorf("%d records and %d schemas, want 4 and 2", len(golden.Avro), len(golden.Schemas))
	}
	for i, text := range golden.Avro {
		if got := decode(recordOf(text)); got != want[i%2] {
			t.Errorf("record %d:\n%s, want\n%s", i, got, want[i%2])
		}
	}
	rec := recordOf(golden.JSONSchema[0])
	rec.Partition.Topic = "other"
	if got := decode(rec); got != "5, , string ä" {
		t.Errorf("a record with JSON Schema: got %s", got)
	}
	for i, want := range []string{
		"1769903999999, p1, string ä, float 0.1, string PAID, string red, null, int 5, int -3",
		"-1000, p2, null, float 0, string OPEN, null, string , null, int 0",
	} {
		rec := recordOf(golden.Protobuf[i])
		rec.Partition.Topic = "messages"
		if got := decode(rec); got != want {
			t.Errorf("message %d:\n%s, want\n%s", i, got, want)
		}
	}
	// A record of another message of the schema has no time.
	other := recordOf(golden.Protobuf[2])
	other.Partition.Topic = "messages"
	for range 2 { // the schema first
		_, err = d.Decode(other)
		if missing, ok := errors.AsType[*record.MissingSchema](err); ok {
			missing.Give(record.Registered{Type: "PROTOBUF", Text: golden.Proto})
		}
	}
	if want := "stream protobuf: at: the event has no timestamp"; err == nil || err.Error() != want {
		t.Errorf("another message: got error %v, want %s", err, want)
	}
}

// A registry that keeps descriptors in base64, as Confluent's serializer for Python registers them, works like one with
// .proto files, also for their imports.
func TestProtobufDescriptorsOfARegistry(t *testing.T) {
	const streams = "streams:\n  s: {topic: events, timestamp: at, format: protobuf, fields: {user: string, amount: {type: decimal, scale: 2, path: amount.value}}}\n"
	r, err := definition.LoadFS(fstest.MapFS{"d/test.yaml": {Data: []byte(streams)}}, "d/test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := r.NewDecoder()
	rec := avroRecord([]byte("\x00\x00\x00\x00\x07\x00" + "\x0a\x02u1" + "\x12\x06\x0a\x040.10" + "\x1a\x02\x08\x01"))
	_, err = d.Decode(rec)
	missing, ok := errors.AsType[*record.MissingSchema](err)
	if !ok {
		t.Fatal(err)
	}
	missing.Give(record.Registered{
		Type: "PROTOBUF",
		Text: "Cg1wYXltZW50LnByb3RvEgRzaG9wGgttb25leS5wcm90bxofZ29vZ2xlL3Byb3RvYnVmL3RpbWVzdGFtcC5wcm90byJuCgdQYXltZW50EhIKBHVzZXIYASABKAlSBHVz" +
			"ZXISIwoGYW1vdW50GAIgASgLMgsuc2hvcC5Nb25leVIGYW1vdW50EioKAmF0GAMgASgLMhouZ29vZ2xlLnByb3RvYnVmLlRpbWVzdGFtcFICYXRiBnByb3RvMw==",
		References: []record.Reference{{Name: "money.proto", Text: "Cgttb25leS5wcm90bxIEc2hvcCIdCgVNb25leRIUCgV2YWx1ZRgBIAEoCVIFdmFsdWViBnByb3RvMw=="}},
	})
	events, err := d.Decode(rec)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(events[0]); got != "1000, , string u1, decimal 0.1" {
		t.Errorf("got %s, want 1000, u1 and 0.1", got)
	}
}

// While a field is renamed, records may have it under both names: the new name counts, not an alias.
func TestAvroFieldUnderBothNames(t *testing.T) {
	r, err := definition.LoadFS(fstest.MapFS{
		"d/test.yaml": {Data: []byte("streams:\n  s: {topic: events, timestamp: t, fields: {user: string}, format: {type: avro, framing: confluent, schema: s.avsc}}\n")},
		"d/s.avsc": {Data: []byte(`{"type": "record", "name": "E", "fields": [{"name": "t", "type": "long"},
			{"name": "user", "type": ["null", "string"], "aliases": ["uid"], "default": null}]}`)},
	}, "d/test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ fields, data, want string }{
		{`{"name": "uid", "type": ["null", "string"]}`, "0000000001" + "0a" + "0202" + "61", "5, , string a"},
		{`{"name": "user", "type": "string"}, {"name": "uid", "type": ["null", "string"]}`, "0000000001" + "0a" + "0261" + "00", "5, , string a"},
		{`{"name": "uid", "type": "string"}, {"name": "user", "type": "string"}`, "0000000001" + "0a" + "0262" + "0261", "5, , string a"},
	} {
		data, _ := hex.DecodeString(c.data)
		d := r.NewDecoder()
		_, err := d.Decode(avroRecord(data))
		missing, ok := errors.AsType[*record.MissingSchema](err)
		if ok {
			missing.Give(record.Registered{Type: "AVRO", Text: `{"type": "record", "name": "E", "fields": [{"name": "t", "type": "long"}, ` + c.fields + `]}`})
		}
		events, err := d.Decode(avroRecord(data))
		if err != nil || len(events) != 1 || shown(events[0]) != c.want {
			t.Errorf("%s: got %v, error %v, want %s", c.fields, events, err, c.want)
		}
		missing.Forget()
	}
}
