package record_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/value"
)

// headers are the headers of a test's record.
type headers map[string]string

func (h headers) Last(key string) ([]byte, bool) {
	v, ok := h[key]
	return []byte(v), ok
}

func (h headers) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for key, value := range h {
			if !yield(key, []byte(value)) {
				return
			}
		}
	}
}

// formatCase is a record and its result: the time, ID and values of its events, or why it is poison; empty for a record
// of no stream.
type formatCase struct {
	headers headers
	value   string
	want    string
}

func checkFormat(t *testing.T, definitions string, cases []formatCase) {
	t.Helper()
	d := defined.Registry(t, definitions).NewDecoder()
	for _, c := range cases {
		rec := avroRecord([]byte(c.value))
		if c.headers != nil {
			rec.Headers = c.headers
		}
		events, err := d.Decode(rec)
		var got string
		switch p, poison := errors.AsType[*record.Poison](err); {
		case poison:
			got = fmt.Sprintf("%s: %v", p.Reason, err)
		case err != nil:
			t.Fatal(err)
		case len(events) > 0:
			got = shown(events[0])
		}
		if got != c.want {
			t.Errorf("%v %q:\n%s, want\n%s", c.headers, c.value, got, c.want)
		}
		if err == nil {
			if n := testing.AllocsPerRun(20, func() { _, _ = d.Decode(rec) }); n != 0 && c.headers == nil {
				t.Errorf("%q: %v allocations, want none", c.value, n)
			}
		}
	}
}

func TestJSONSchema(t *testing.T) {
	checkFormat(t, `
streams:
  s: {topic: events, timestamp: t, format: json_schema, fields: {user: string, n: {type: int, path: a.n}}}
`, []formatCase{
		{nil, "\x00\x00\x00\x00\x07{\"t\": 5, \"user\": \"u\", \"a\": {\"n\": 1}}", "5, , string u, int 1"},
		{nil, `{"t": 5}`, "malformed: stream s: expected a zero byte and the ID of a schema, found byte 0x7b"},
		{nil, "\x00\x00\x00", "malformed: stream s: expected a zero byte and the ID of a schema, found 3 bytes"},
		{nil, "\x00\x00\x00\x00\x07{", "malformed: stream s: malformed JSON at byte 1 of 1"},
	})
}

// A tombstone belongs to no stream, in any format; a CloudEvent may have all that it says in its headers.
func TestTombstones(t *testing.T) {
	for _, format := range []string{"json", "json_schema", "debezium", "cloudevents", "avro", "protobuf", "{type: csv, columns: [t]}"} {
		d := defined.Registry(t, "streams: {s: {topic: events, timestamp: t, fields: {t: timestamp}, format: "+format+"}}\n").NewDecoder()
		if events, err := d.Decode(avroRecord(nil)); len(events) != 0 || err != nil {
			t.Errorf("%s: a tombstone is %v, error %v", format, events, err)
		}
	}
	d := defined.Registry(t, "streams: {s: {topic: events, timestamp: {path: ce_time, unit: rfc3339}, fields: {ce_type: string}, format: cloudevents}}\n").NewDecoder()
	rec := avroRecord(nil)
	rec.Headers = headers{"ce_specversion": "1.0", "ce_time": "2026-01-31T10:00:00Z", "ce_type": "t"}
	if events, err := d.Decode(rec); len(events) != 1 || err != nil || string(events[0].Values[0].Str) != "t" {
		t.Errorf("a CloudEvent without data is %v, error %v", events, err)
	}
}

func TestDebezium(t *testing.T) {
	const row = `{"id": 7, "at": 5, "user": "u", "address": {"city": "Riga"}}`
	checkFormat(t, `
streams:
  s:
    topic: events
    match: __source.table == "payments"
    timestamp: at
    id: id
    format: debezium
    fields: {user: string, city: {type: string, path: address.city}, op: {type: string, path: __op}, changed: {type: timestamp, path: __ts_ms}, note: string}
`, []formatCase{
		{nil, `{"before": null, "after": ` + row + `, "source": {"table": "payments"}, "op": "c", "ts_ms": 9}`,
			"5, 7, string u, string Riga, string c, timestamp 9, null"},
		{nil, `{"schema": {"type": "struct", "fields": [{"field": "after"}]}, "payload": {"op": "u", "before": {"user": "old", "note": "n"}, "after": ` + row + `, "source": {"table": "payments"}}}`,
			"5, 7, string u, string Riga, string u, null, null"},
		{nil, `{"before": ` + row + `, "after": null, "source": {"table": "payments"}, "op": "d", "ts_ms": 9}`,
			"5, 7, string u, string Riga, string d, timestamp 9, null"},
		{nil, `{"before": null, "after": ` + row + `, "source": {"table": "logins"}, "op": "r"}`, ""},
		{nil, `{"before": null, "after": {"id": 7, "at": 5, "user": "u", "note": "__debezium_unavailable_value"}, "source": {"table": "payments"}, "op": "u"}`,
			"5, 7, string u, null, string u, null, null"},
		{nil, `{"before": null, "after": {"id": 7, "at": 5, "user": "u", "note": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, "source": {"table": "payments"}, "op": "u"}`,
			"5, 7, string u, null, string u, null, null"},
		{nil, `{"source": {"table": "payments"}, "op": "t", "ts_ms": 9}`, ""},
		{nil, `{"source": {"table": "payments"}, "op": "m", "message": {}}`, ""},
		{nil, `{"before": {"user": "before"}, "after": null, "source": {"table": "payments"}, "op": "u"}`, "wrong_type: stream s: after: expected an object, found null"},
		{nil, `{"source": {"table": "payments"}, "op": "d"}`, "wrong_type: stream s: before: expected an object, found nothing"},
		{nil, row, "malformed: stream s: not a change event of Debezium: its op is nothing; flattened rows are of format json, and heartbeats and the like should have topics of their own"},
		{nil, `{"schema": null, "payload": null}`, ""},
		{nil, `{"payload": null, "op": "c", "after": ` + row + `, "source": {"table": "payments"}}`, "5, 7, string u, string Riga, string c, null, null"},
		{nil, `{"op": "x"}`, "malformed: stream s: not a change event of Debezium: its op is a string"},
		{nil, `[]`, "wrong_type: stream s: expected an object, found an array"},
		{nil, `{"op"`, "malformed: stream s: malformed JSON at byte 5 of 5"},
	})
}

// A decimal in base64 is its digits as an integer of bytes, as Debezium writes it by default.
func TestDecimalsInBase64(t *testing.T) {
	const definitions = `
streams:
  s:
    topic: events
    timestamp: at
    format: debezium
    fields: {amount: {type: decimal, scale: 3, encoding: base64}}
`
	of := func(amount string) string { return `{"op": "c", "after": {"at": 5, "amount": ` + amount + `}}` }
	refused := func(found string) string {
		return "wrong_type: stream s: amount: expected a decimal of at most 64 bits in base64, found " + found
	}
	checkFormat(t, definitions, []formatCase{
		{nil, of(`"AeJA"`), "5, , decimal 123.456"},
		{nil, of(`"/w=="`), "5, , decimal -0.001"},
		{nil, of(`"AA=="`), "5, , decimal 0"},
		{nil, of(`"1000"`), "5, , decimal -2667.212"}, // 0xd74d34
		{nil, of(`"gAAAAAAAAAA="`), "5, , decimal -9223372036854775.808"},
		{nil, of(`"AH//////////"`), "5, , decimal 9223372036854775.807"},
		{nil, of(`"////////////////"`), "5, , decimal -0.001"},
		{nil, of("null"), "5, , null"},
		{nil, of(`"AIAAAAAAAAAA"`), refused("a string that is not one")},
		{nil, of(`"` + strings.Repeat("A", 4000) + `"`), refused("a string that is not one")},
		{nil, of(`"AeJ"`), refused("a string that is not one")},
		{nil, of(`"12.50"`), refused("a string that is not one")},
		{nil, of(`""`), refused("an empty text")},
		{nil, of("12.5"), refused("12.5")},
		// A column without a fixed scale has one in each record.
		{nil, of(`{"scale": 2, "value": "AeJA"}`), "5, , decimal 1234.56"},
		{nil, of(`{"value": "/w==", "scale": 0}`), "5, , decimal -1"},
		{nil, of(`{"scale": -2, "value": "Aw=="}`), "5, , decimal 300"},
		{nil, of(`{"scale": 18, "value": "DeC2s6dkAAA="}`), "5, , decimal 1"},
		{nil, of(`{"scale": 20, "value": "BWvHXi1jEAAA"}`), "5, , decimal 1"}, // 10^20, of more than 64 bits
		{nil, of(`{"scale": 0, "value": "BWvHXi1jEAAA"}`), refused("an object of scale and value that has more, or more than 3 digits after the decimal point")},
		{nil, of(`{"scale": 1000, "value": "AA=="}`), "5, , decimal 0"},
		{nil, of(`{"scale": 4, "value": "AQ=="}`), refused("an object, which `round: true` rounds")},
		{nil, of(`{"scale": -1000, "value": "AQ=="}`), refused("an object of scale and value that has more, or more than 3 digits after the decimal point")},
		{nil, of(`{"scale": 0, "value": "f/////////8="}`), refused("an object of scale and value that has more, or more than 3 digits after the decimal point")},
		{nil, of(`{"scale": 1001, "value": "AQ=="}`), refused("an object")},
		{nil, of(`{"scale": 99999999999999999999, "value": "AQ=="}`), refused("an object")},
		{nil, of(`{"scale": 1.5, "value": "AQ=="}`), refused("an object")},
		{nil, of(`{"scale": null, "value": "AQ=="}`), refused("an object")},
		{nil, of(`{"scale": 2, "value": ""}`), refused("an object")},
		{nil, of(`{"scale": 2, "value": 5}`), refused("an object")},
		{nil, of(`{"scale": 2, "value": [1]}`), refused("an object")},
		{nil, of(`{"scale": 2, "value": "AQ"}`), refused("an object")},
		{nil, of(`{"scale": 2, "value": "` + strings.Repeat("AAAA", 400) + `"}`), refused("an object")},
		{nil, of(`{"scale": 2}`), refused("an object")},
		{nil, of(`{"value": "AQ=="}`), refused("an object")},
		{nil, of(`{}`), refused("an object")},
		{nil, of(`[2, "AQ=="]`), refused("an array")},
	})
	checkFormat(t, strings.Replace(definitions, ", encoding: base64", "", 1), []formatCase{
		{nil, of(`{"scale": 2, "value": "AeJA"}`), "wrong_type: stream s: amount: expected a 64-bit decimal with at most 3 digits after the " +
			"decimal point, found an object of scale and value, which `encoding: base64` reads"},
		{nil, of(`{"scale": 2}`), "wrong_type: stream s: amount: expected a 64-bit decimal with at most 3 digits after the decimal point, found an object"},
		{nil, of(`"AeJA"`), "wrong_type: stream s: amount: expected a 64-bit decimal with at most 3 digits after the decimal point, found a string, which `encoding: base64` reads"},
		{nil, of(`"1,5"`), "wrong_type: stream s: amount: expected a 64-bit decimal with at most 3 digits after the decimal point, found a string that is not one"},
	})
	checkFormat(t, strings.Replace(definitions, ", encoding: base64", ", exponent: -2", 1), []formatCase{
		{nil, of(`"AeJA"`), "wrong_type: stream s: amount: expected a 64-bit decimal with at most 3 digits after the decimal point, found a string, which `encoding: base64` reads"},
	})
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := random.Int64()>>random.IntN(64) ^ -random.Int64N(2)
		digits := binary.BigEndian.AppendUint64(nil, uint64(n))
		for len(digits) > 1 && int8(digits[0]) == int8(digits[1])>>7 {
			digits = digits[1:]
		}
		want := value.Value{Type: value.Decimal, Num: n, Scale: 3}
		checkFormat(t, definitions, []formatCase{{nil, of(strconv.Quote(base64.StdEncoding.EncodeToString(digits))), "5, , " + show(want)}})
	}
}

func TestCloudEvents(t *testing.T) {
	checkFormat(t, `
streams:
  s:
    topic: events
    match: ce_type == "payment"
    timestamp: {path: ce_time, unit: rfc3339}
    id: ce_id
    format: cloudevents
    fields: {user: string, city: {type: string, path: address.city}, from: {type: string, path: ce_source}}
`, []formatCase{
		{nil, `{"type": "payment", "id": "i", "time": "1970-01-01T00:00:01Z", "data": {"user": "u", "address": {"city": "Riga"}, "type": "x"}, "source": "/shop", "specversion": "1.0"}`,
			"1000, i, string u, string Riga, string /shop"},
		{nil, `{"specversion": "1.0", "type": "payment", "id": "i", "time": "1970-01-01T00:00:01Z"}`, "1000, i, null, null, null"},
		{nil, `{"specversion": "1.0", "type": "login", "id": "i", "data": {}}`, ""},
		{headers{"ce_specversion": "1.0", "ce_type": "payment", "ce_id": "i", "ce_time": "1970-01-01T00:00:01Z", "ce_source": "/shop"},
			`{"user": "u", "address": {"city": "Riga"}, "ce_type": "not this"}`, "1000, i, string u, string Riga, string /shop"},
		{headers{"ce_specversion": "1.0", "ce_type": "payment", "ce_time": "1970-01-01T00:00:01Z"}, ``, "1000, , null, null, null"},
		{headers{"ce_specversion": "1.0", "ce_type": "payment"}, `<xml/>`, "malformed: stream s: malformed JSON at byte 0 of 6"},
		{headers{"other": "1.0"}, `{"type": "payment"}`, "malformed: stream s: not a CloudEvent: it has neither specversion nor a header ce_specversion"},
		{nil, `{"specversion": "1.0", "type": "payment", "id": "i", "time": "1970-01-01T00:00:01Z", "data_base64": "eyJ1c2VyIjoidSJ9"}`,
			"wrong_type: stream s: data_base64: expected data in JSON, found bytes"},
		{nil, `{"specversion": "1.0", "type": "payment", "data": "text"}`, "wrong_type: stream s: data: expected an object, found a string"},
		{nil, `[{"specversion": "1.0"}]`, "wrong_type: stream s: expected an object, found an array"},
	})
}

// The attribute that every event has is found, too.
func TestCloudEventsVersion(t *testing.T) {
	checkFormat(t, `
streams:
  s: {topic: events, match: 'ce_specversion == "1.0"', timestamp: at, format: cloudevents, fields: {version: {type: string, path: ce_specversion}}}
`, []formatCase{
		{nil, `{"specversion": "1.0", "data": {"at": 5}}`, "5, , string 1.0"},
		{nil, `{"specversion": "0.3", "data": {"at": 5}}`, ""},
		{headers{"ce_specversion": "1.0"}, `{"at": 5}`, "5, , string 1.0"},
	})
}

// FuzzEnvelopes passes arbitrary bytes to the formats with JSON in an envelope: they are poison, or
// read the same when read again after another record.
func FuzzEnvelopes(f *testing.F) {
	f.Add([]byte(`{"before": {"user": "b"}, "after": {"at": 1, "user": "u"}, "op": "d", "payload": {"op": "c"}}`))
	f.Add([]byte(`{"specversion": "1.0", "time": "1970-01-01T00:00:01Z", "data": {"user": "u"}, "data": {"at": 1}}`))
	var decoders []*record.Decoder
	for _, format := range []string{"debezium", "cloudevents", "json_schema"} {
		decoders = append(decoders, defined.Registry(f, "streams:\n  s: {topic: events, timestamp: at, format: "+format+", fields: {user: string, op: {type: string, path: __op}, id: {type: string, path: ce_id}}}\n").NewDecoder())
	}
	other := avroRecord([]byte(`{"specversion": "1.0", "id": "other", "op": "c", "after": {"at": 1, "user": "other"}, "data": {"at": 1, "user": "other"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, d := range decoders {
			var texts []string
			for range 2 {
				events, err := d.Decode(avroRecord(data))
				if _, poison := errors.AsType[*record.Poison](err); err != nil && !poison {
					t.Fatalf("%v is not poison", err)
				}
				text := fmt.Sprint(err)
				if len(events) > 0 {
					text += shown(events[0])
				}
				texts = append(texts, text)
				_, _ = d.Decode(other)
			}
			if texts[0] != texts[1] {
				t.Fatalf("%q: decoded as %s, the second time as %s", data, texts[0], texts[1])
			}
		}
	})
}
