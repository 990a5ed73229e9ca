package record_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/value"
)

const decodeDefinitions = `
streams:
  s:
    topic: events
    timestamp: {path: e.t, unit: ms}
    fields:
      str: string
      int: int
      float: float
      dec: {type: decimal, scale: 2}
      bool: bool
      at: timestamp
      loc: location
      deep: {type: string, path: e.a.b}
      must: {type: string, required: true, expr: 'str ?? "none"'}
features: {}
`

const twoStreams = `
streams:
  transaction:
    topic: events
    match: type == "transaction"
    timestamp: timestamp
    fields: {user_id: string}
  paid:
    topic: events
    match: status == "approved"
    timestamp: timestamp
    fields: {user_id: string}
`

// decodeOne decodes a record with `"e": {"t": -1}` and further members.
func decodeOne(t testing.TB, d *record.Decoder, members string) ([]value.Value, error) {
	t.Helper()
	if !strings.Contains(members, `"e"`) {
		members = `"e":{"t":-1},` + members
	}
	rec := event("{" + strings.TrimSuffix(members, ",") + "}")
	rec.Timestamp = record.NoTime
	events, err := d.Decode(rec)
	if err != nil {
		return nil, err
	}
	return events[0].Values, nil
}

func TestDecodeValues(t *testing.T) {
	r := defined.Registry(t, decodeDefinitions)
	d := r.NewDecoder()
	for _, c := range []struct{ field, members, want string }{
		{"str", ``, "null"},
		{"str", `"str":null`, "null"},
		{"str", `"str":""`, "string "},
		{"str", `"str":"a","str":"b"`, "string b"},
		{"str", `"str":"a","str":null`, "null"},
		{"str", `"s\u0074r":"a"`, "string a"},
		{"str", `"str":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00"`, "string \"\\/\b\f\n\r\tä😀"},
		{"str", `"str":"\ud83dx\ude00\ud83d\u0041"`, "string \ufffdx\ufffd\ufffdA"},
		{"int", `"int":-12`, "int -12"},
		{"int", `"int":1.0`, "int 1"},
		{"int", `"int":1e3`, "int 1000"},
		{"int", `"int":1200e-2`, "int 12"},
		{"int", `"int":-0`, "int 0"},
		{"int", `"int":0e999999999999999999999`, "int 0"},
		{"int", `"int":9223372036854775807`, "int 9223372036854775807"},
		{"int", `"int":-9223372036854775808`, "int -9223372036854775808"},
		{"float", `"float":1e-400`, "float 0"},
		{"float", `"float":-0.0`, "float 0"},
		{"float", `"float":0.1`, "float 0.1"},
		{"dec", `"dec":166.60`, "decimal 166.6"},
		{"dec", `"dec":"166.60"`, "decimal 166.6"},
		{"dec", `"dec":1.2300000000000000000000000`, "decimal 1.23"},
		{"dec", `"dec":1e3`, "decimal 1000"},
		{"dec", `"dec":-92233720368547758.08`, "decimal -92233720368547758.08"},
		{"bool", `"bool":false`, "bool false"},
		{"at", `"at":1700000000000`, "timestamp 1700000000000"},
		{"at", `"at":"2023-11-14T22:13:20Z"`, "timestamp 1700000000000"},
		{"at", `"at":"2023-11-14T23:13:20.5+01:00"`, "timestamp 1700000000500"},
		{"at", `"at":"2023-11-14 23:13:20+01"`, "timestamp 1700000000000"},
		{"loc", `"loc":{"lat":-90,"lon":180,"more":[]}`, "location -90,180"},
		{"deep", `"e":{"t":-1,"a":{"b":"x"}}`, "string x"},
		{"deep", `"e":{"t":-1,"a":{"b":"x"},"a":{}}`, "null"},
		{"deep", `"e":{"t":-1,"a":null}`, "null"},
		{"must", `"str":null`, "string none"},
	} {
		values, err := decodeOne(t, d, c.members)
		if err != nil {
			t.Errorf("%s: %v", c.members, err)
			continue
		}
		i := r.Streams[0].FieldIndex(c.field)
		if got := show(values[i]); got != c.want {
			t.Errorf("%s: %s, want %s", c.members, got, c.want)
		}
	}
}

func TestDecodePoison(t *testing.T) {
	d := defined.Registry(t, decodeDefinitions).NewDecoder()
	for _, c := range []struct {
		members string
		reason  record.Reason
		message string
	}{
		{`"str":1`, record.WrongType, "str: expected a string, found 1"},
		{`"str":{}`, record.WrongType, "str: expected a string, found an object"},
		{"\"str\":\"\xff\"", record.InvalidUTF8, "str: the string is not valid UTF-8"},
		{`"int":"1"`, record.WrongType, "int: expected a 64-bit integer, found a string, which `lenient: true` reads"},
		{`"int":1.5`, record.WrongType, "int: expected a 64-bit integer, found 1.5"},
		{`"int":9223372036854775808`, record.WrongType, "int: expected a 64-bit integer, found 9223372036854775808"},
		{`"int":true`, record.WrongType, "int: expected a 64-bit integer, found a bool"},
		{`"int":1` + strings.Repeat("0", 60), record.WrongType, "int: expected a 64-bit integer, found 1" + strings.Repeat("0", 39) + "…"},
		{`"float":1e999`, record.WrongType, "float: expected a number that a 64-bit float holds, found 1e999"},
		{`"float":"1"`, record.WrongType, "float: expected a number that a 64-bit float holds, found a string, which `lenient: true` reads"},
		{`"dec":1.234`, record.WrongType, "dec: expected a 64-bit decimal with at most 2 digits after the decimal point, found 1.234, which `round: true` rounds"},
		{`"dec":1e20`, record.WrongType, "dec: expected a 64-bit decimal with at most 2 digits after the decimal point, found 1e20"},
		{`"dec":"1,5"`, record.WrongType, "dec: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string that is not one"},
		{`"dec":"1.234"`, record.WrongType, "dec: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string, which `round: true` rounds"},
		{`"dec":"+1"`, record.WrongType, "dec: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string that is not one"},
		{`"dec":""`, record.WrongType, "dec: expected a 64-bit decimal with at most 2 digits after the decimal point, found an empty text"},
		{`"dec":[]`, record.WrongType, "dec: expected a 64-bit decimal with at most 2 digits after the decimal point, found an array"},
		{`"bool":0`, record.WrongType, "bool: expected a bool, found 0, which `lenient: true` reads"},
		{`"at":1.5`, record.WrongType, "at: expected a timestamp (milliseconds since 1970, or RFC 3339), found 1.5"},
		{`"at":"today"`, record.WrongType, "at: expected a timestamp (milliseconds since 1970, or RFC 3339), found a string"},
		{`"at":"2023-11-14T22:13:20"`, record.WrongType, "at: expected a timestamp (milliseconds since 1970, or RFC 3339), found a string, which has no offset from UTC: set tz, the time zone of such texts"},
		{`"at":253402300800000`, record.WrongType, "at: expected a timestamp (milliseconds since 1970, or RFC 3339), found 253402300800000"},
		{`"loc":{"lat":90.1,"lon":0}`, record.WrongType, `loc: expected a location ({"lat": -90 to 90, "lon": -180 to 180}), found an object`},
		{`"loc":{"lat":1}`, record.WrongType, "loc: expected a location ({\"lat\": -90 to 90, \"lon\": -180 to 180}), found an object without one of these: if they have other names, or may both be null, give their paths as `lat` and `lon` of the field"},
		{`"loc":[1,2]`, record.WrongType, "loc: expected a location ({\"lat\": -90 to 90, \"lon\": -180 to 180}), found an array, which `encoding: lon_lat` or `encoding: lat_lon` reads, in that order"},
		{`"loc":[1,"2"]`, record.WrongType, `loc: expected a location ({"lat": -90 to 90, "lon": -180 to 180}), found an array`},
		{`"loc":"POINT(1 2)"`, record.WrongType, "loc: expected a location ({\"lat\": -90 to 90, \"lon\": -180 to 180}), found a string, which `encoding: wkt` reads"},
		{`"loc":{"lat":"1","lon":2}`, record.WrongType, "loc: expected a location ({\"lat\": -90 to 90, \"lon\": -180 to 180}), found an object, which `lenient: true` reads"},
		{`"loc":{"lat":1,"lon":null}`, record.WrongType, "loc: expected a location ({\"lat\": -90 to 90, \"lon\": -180 to 180}), found an object without one of these: if they have other names, or may both be null, give their paths as `lat` and `lon` of the field"},
		{`"loc":{"lat":null,"lon":null}`, record.WrongType, "loc: expected a location ({\"lat\": -90 to 90, \"lon\": -180 to 180}), found an object without one of these: if they have other names, or may both be null, give their paths as `lat` and `lon` of the field"},
		{`"loc":{"latitude":1,"lng":2}`, record.WrongType, "loc: expected a location ({\"lat\": -90 to 90, \"lon\": -180 to 180}), found an object without one of these: if they have other names, or may both be null, give their paths as `lat` and `lon` of the field"},
		{`"e":{"t":-1,"a":"x"}`, record.WrongType, "e.a: expected an object, found a string"},
		{`"e":{}`, record.MissingTimestamp, "e.t: the event has no timestamp"},
		{`"e":{"t":null}`, record.MissingTimestamp, "e.t: the event has no timestamp"},
		{`"e":null`, record.MissingTimestamp, "e.t: the event has no timestamp"},
		{`"e":1`, record.BadTimestamp, "e: expected an object, found 1"},
		{`"e":{"t":"1700000000000"}`, record.BadTimestamp, "e.t: expected a timestamp in ms of the years 1 to 9999, found a string, which `lenient: true` reads"},
		{`"e":{"t":1e300}`, record.BadTimestamp, "e.t: expected a timestamp in ms of the years 1 to 9999, found 1e300"},
		{`"e":{"t":-62135856000001}`, record.BadTimestamp, "e.t: expected a timestamp in ms of the years 1 to 9999, found -62135856000001"},
		{`"e":{"t":-1},"str":"\x"`, record.Malformed, "malformed JSON at byte 22 of 25"},
		{`"e":{"t":01}`, record.Malformed, "malformed JSON at byte 11 of 14"},
		{`"e":{"t":NaN}`, record.Malformed, "malformed JSON at byte 10 of 15"},
		{`"e":{"t":-1},`, record.Malformed, "malformed JSON at byte 15 of 16"},
	} {
		members := c.members
		if strings.HasSuffix(members, ",") {
			members += " "
		}
		_, err := decodeOne(t, d, members)
		var p *record.Poison
		if !errors.As(err, &p) || p.Reason != c.reason || p.Stream != "s" || p.Error() != "stream s: "+c.message {
			t.Errorf("%s: %v; want %s: %s", c.members, err, c.reason, c.message)
		}
	}
}

func TestDecodeNoObject(t *testing.T) {
	one, two := defined.Registry(t, decodeDefinitions).NewDecoder(), defined.Registry(t, twoStreams).NewDecoder()
	for value, want := range map[string]string{
		"":       "the record is empty, and not a tombstone, which has no value at all",
		"[1]":    "expected an object, found an array",
		" null ": "expected an object, found null",
		"{} x":   "malformed JSON at byte 3 of 4",
	} {
		if _, err := one.Decode(event(value)); err == nil || err.Error() != "stream s: "+want {
			t.Errorf("%q: %v, want %s", value, err, want)
		}
		if _, err := two.Decode(event(value)); err == nil || err.Error() != want {
			t.Errorf("%q in a topic of two streams: %v, want %s", value, err, want)
		}
	}
}

func TestDerivedFields(t *testing.T) {
	r := defined.Registry(t, `
streams:
  s:
    topic: events
    timestamp: {path: t, unit: ms}
    fields:
      n: int
      dec: {type: decimal, scale: 2}
      costly: {type: bool, expr: dec > 1}
      double: {type: decimal, scale: 2, expr: dec * 2}
      tenth: {type: decimal, scale: 2, expr: dec * 0.1}
      whole: {type: decimal, scale: 3, expr: n}
      half: {type: float, expr: n / 2}
      big: {type: int, required: true, expr: n * 3}
features: {}
`)
	d := r.NewDecoder()
	for members, want := range map[string]string{
		`"n":3,"dec":1.20`:       "bool true, decimal 2.4, decimal 0.12, decimal 3, float 1.5, int 9",
		`"n":3`:                  "null, null, null, decimal 3, float 1.5, int 9",
		`"dec":1`:                "stream s: big: the field big is required",
		`"n":1,"dec":0.01`:       "stream s: tenth: the result has more than 2 digits after the decimal point",
		`"n":1,"dec":5e16`:       "stream s: double: the result of a calculation is too large",
		`"n":4e18`:               "stream s: whole: the result of a calculation is too large",
		`"n":9000000000000000`:   "decimal 9000000000000000",
		`"n":-9000000000000000`:  "decimal -9000000000000000",
		`"n":9000000000000001`:   "decimal 9000000000000001",
		`"n":92233720368547758`:  "stream s: whole: the result of a calculation is too large",
		`"n":-92233720368547758`: "stream s: whole: the result of a calculation is too large",
	} {
		got := ""
		events, err := d.Decode(event(`{"t":NOW,` + members + `}`))
		if err != nil {
			got = err.Error()
		} else {
			var parts []string
			for _, v := range events[0].Values[2:] {
				parts = append(parts, show(v))
			}
			got = strings.Join(parts, ", ")
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", members, got, want)
		}
	}
}

func TestEventTime(t *testing.T) {
	for _, c := range []struct {
		unit, value string
		ms          int64
		message     string
	}{
		{"ms", `1700000000000`, recorded, ""},
		{"ms", `1.7e12`, recorded, ""},
		{"ms", `1699999999999.9`, recorded - 1, ""},
		{"s", `1700000000`, recorded, ""},
		{"s", `1699999999.1239`, recorded - 877, ""},
		{"s", `-0.0001`, -1, ""},
		{"us", `1700000000000999`, recorded, ""},
		{"ns", `1700000000000999999`, recorded, ""},
		{"rfc3339", `"2023-11-14T22:13:20.000999Z"`, recorded, ""},
		{"rfc3339", `"2023-11-14T21:13:20-01:00"`, recorded, ""},
		{"ms", `1700000300000`, recorded, ""}, // a clock that is ahead
		{"ms", `1700000300001`, 0, "stream s: t: the event is 5m0.001s ahead of its record; the limit is 5m0s"},
		{"rfc3339", `"9999-12-29T00:00:00Z"`, 0, "stream s: t: the event is 2913218 days ahead of its record; the limit is 5m0s"},
		{"rfc3339", `"2023-11-14 22:13:20"`, 0, "stream s: t: expected an RFC 3339 timestamp of the years 1 to 9999, such as 2026-01-31T23:59:59.999Z, found a string, which has no offset from UTC: set tz, the time zone of such texts"},
		{"rfc3339", `"today"`, 0, "stream s: t: expected an RFC 3339 timestamp of the years 1 to 9999, such as 2026-01-31T23:59:59.999Z, found a string"},
		{"rfc3339", `"2023-11-14 21:13:20-0100"`, recorded, ""},
		{"rfc3339, tz: Europe/Berlin", `"2023-11-14T23:13:20"`, recorded, ""},
		{"rfc3339, tz: Europe/Berlin", `"2023-11-14T22:13:20Z"`, recorded, ""},
		{"datetime", `"2023-11-14 22:13:20"`, recorded, ""},
		{"datetime", `"2023-11-14 22:13:20.000999"`, recorded, ""},
		{"datetime", `"2023-11-14T22:13:20"`, recorded, ""},
		{"datetime", `"2023-11-14 23:13:20+01"`, recorded, ""},
		{"datetime, tz: America/New_York", `"2023-11-14 17:13:20"`, recorded, ""},
		{"datetime, tz: America/New_York", `"14.11.2023"`, 0, "stream s: t: expected a timestamp of the years 1 to 9999 (date and time in America/New_York, such as 2026-01-31 23:59:59.999), found a string"},
		{"datetime", `1700000000`, 0, "stream s: t: expected a timestamp of the years 1 to 9999 (date and time in UTC, such as 2026-01-31 23:59:59.999), found 1700000000"},
		{"auto", `1700000000`, recorded, ""},
		{"auto", `"1700000000.000"`, recorded, ""},
		{"auto", `1700000000000`, recorded, ""},
		{"auto", `1700000000000000`, recorded, ""},
		{"auto", `"1700000000000000000"`, recorded, ""},
		{"auto", `"2023-11-14 22:13:20"`, recorded, ""},
		{"auto, tz: Europe/Berlin", `"2023-11-14 23:13:20"`, recorded, ""},
		{"auto", `"today"`, 0, "stream s: t: expected a timestamp of the years 1 to 9999 (a number since 1970, or date and time in UTC, such as 2026-01-31 23:59:59.999), found a string"},
		{"auto", `true`, 0, "stream s: t: expected a timestamp of the years 1 to 9999 (a number since 1970, or date and time in UTC, such as 2026-01-31 23:59:59.999), found a bool"},
		{"auto", `0`, 0, "stream s: t: the event is of 1970-01-01, its record of 2023-11-14"},
		{"auto", `"0001-01-01T00:00:00+08:00"`, 0, "stream s: t: the event is of 0001-01-01, a date that stands for none"},
		{"auto", `"9999-12-31T23:59:59-05:00"`, 0, "stream s: t: the event is of 9999-12-31, a date that stands for none"},
		{"LAYOUT: 02.01.2006 15:04:05, tz: Europe/Berlin", `"14.11.2023 23:13:20"`, recorded, ""},
		{"LAYOUT: '20060102150405'", `20231114221320`, recorded, ""},
		{"LAYOUT: 02.01.2006 15:04:05 -0700", `"14.11.2023 23:13:20 +0100"`, recorded, ""},
		{"LAYOUT: 02.01.2006", `"31.11.2023"`, 0, `stream s: t: expected a timestamp of the years 1 to 9999 (a text of the layout "02.01.2006", in UTC), found a string`},
		{"LAYOUT: 02.01.2006 15:04 -0700", `{}`, 0, `stream s: t: expected a timestamp of the years 1 to 9999 (a text of the layout "02.01.2006 15:04 -0700"), found an object`},
		{"ms", `1700000000`, 0, "stream s: t: the event is of 1970-01-20, its record of 2023-11-14: set unit: s if the timestamp is in s, not ms"},
		{"us", `1700000000000`, 0, "stream s: t: the event is of 1970-01-20, its record of 2023-11-14: set unit: ms if the timestamp is in ms, not us"},
		{"ns", `1690000000000`, 0, "stream s: t: the event is of 1970-01-01, its record of 2023-11-14: set unit: ms if the timestamp is in ms, not ns"},
		{"ms", `1700000000000000`, 0, "stream s: t: expected a timestamp in ms of the years 1 to 9999, found 1700000000000000: set unit: us if the timestamp is in us, not ms"},
		{"s", `1700000000000`, 0, "stream s: t: expected a timestamp in s of the years 1 to 9999, found 1700000000000: set unit: ms if the timestamp is in ms, not s"},
		{"ms", `9e15`, 0, "stream s: t: expected a timestamp in ms of the years 1 to 9999, found 9e15"},
		{"ms", `0`, 0, "stream s: t: the event is of 1970-01-01, its record of 2023-11-14"},
		{"ms", `31535999999`, 0, "stream s: t: the event is of 1970-12-31, its record of 2023-11-14"},
		{"ms", `31536000000`, 31536000000, ""},
		{"ms", `-1`, -1, ""},
		{"datetime", `"1970-01-01 00:00:00"`, 0, "stream s: t: the event is of 1970-01-01, its record of 2023-11-14"},
		{"rfc3339", `1700000000`, 0, "stream s: t: expected an RFC 3339 timestamp of the years 1 to 9999, such as 2026-01-31T23:59:59.999Z, found 1700000000"},
	} {
		r := defined.Registry(t, strings.ReplaceAll(`
streams:
  s: {topic: events, timestamp: {path: t, unit: UNIT}, fields: {a: string}}
features: {}
`, "unit: UNIT", strings.Replace("unit: "+c.unit, "unit: LAYOUT", "layout", 1)))
		events, err := r.NewDecoder().Decode(event(`{"t":` + c.value + `}`))
		switch {
		case c.message != "":
			if err == nil || err.Error() != c.message {
				t.Errorf("%s %s: %v, want %s", c.value, c.unit, err, c.message)
			}
		case err != nil || events[0].Time != c.ms || events[0].Now != recorded:
			t.Errorf("%s %s: %v, %v; want %d", c.value, c.unit, events, err, c.ms)
		}
	}
}

// Nothing would bound the time of an event in a record without a timestamp.
func TestRecordWithoutATimestamp(t *testing.T) {
	r := defined.Registry(t, "streams:\n  s: {topic: events, timestamp: t, fields: {a: string}}\nfeatures: {}\n")
	rec := event(`{"t":NOW}`)
	for _, rec.Timestamp = range []int64{-1, -2, math.MinInt64 + 1} {
		_, err := r.NewDecoder().Decode(rec)
		if want := "stream s: the record has no timestamp, which bounds that of its event: let the topic have LogAppendTime"; fmt.Sprint(err) != want {
			t.Errorf("a timestamp of %d: %v, want %s", rec.Timestamp, err, want)
		}
	}
}

// A record's own time may be far in the future, as that of a producer which writes nanoseconds.
func TestEventOfRecordFromFuture(t *testing.T) {
	r := defined.Registry(t, "streams:\n  s: {topic: events, timestamp: t, fields: {a: string}}\nfeatures: {}\n")
	rec := event(`{"t":NOW}`)
	rec.Timestamp = math.MaxInt64
	if events, err := r.NewDecoder().Decode(rec); err != nil || events[0].Time != recorded {
		t.Errorf("%v, %v; want an event of %d", events, err, recorded)
	}
}

// A field's unit says how its timestamp is encoded in the record.
func TestFieldUnit(t *testing.T) {
	for _, c := range []struct {
		unit, value string
		ms          int64
		message     string
	}{
		{"s", `1700000000.5`, recorded + 500, ""},
		{"us", `1700000000000999`, recorded, ""},
		{"rfc3339", `"2023-11-14T22:13:20Z"`, recorded, ""},
		{"datetime", `"2023-11-14 22:13:20.5"`, recorded + 500, ""},
		{"ms", `"2023-11-14T22:13:20Z"`, 0, "stream s: a: expected a timestamp (ms), found a string"},
		{"datetime", `"2023-11-14T22:13:20Z"`, recorded, ""},
		{"datetime", `"2023-11-14T22:13:20 CET"`, 0, "stream s: a: expected a timestamp (date and time in UTC, such as 2026-01-31 23:59:59.999), found a string"},
		{"auto", `1700000000`, recorded, ""},
		{"auto", `1700000000.5`, recorded + 500, ""},
		{"auto", `"soon"`, 0, "stream s: a: expected a timestamp (a number since 1970, or date and time in UTC, such as 2026-01-31 23:59:59.999), found a string"},
		{"LAYOUT: 02/Jan/2006 15:04:05 -0700", `"14/Nov/2023 23:13:20 +0100"`, recorded, ""},
		{"LAYOUT: 02/Jan/2006 15:04:05", `"14/11/2023 23:13:20"`, 0, `stream s: a: expected a timestamp (a text of the layout "02/Jan/2006 15:04:05", in UTC), found a string`},
		{"datetime", `5`, 0, "stream s: a: expected a timestamp (date and time in UTC, such as 2026-01-31 23:59:59.999), found 5"},
	} {
		r := defined.Registry(t, strings.ReplaceAll(`
streams:
  s: {topic: events, timestamp: t, fields: {a: {type: timestamp, unit: UNIT}}}
features: {}
`, "unit: UNIT", strings.Replace("unit: "+c.unit, "unit: LAYOUT", "layout", 1)))
		events, err := r.NewDecoder().Decode(event(`{"t":-1,"a":` + c.value + `}`))
		switch {
		case c.message != "":
			if err == nil || err.Error() != c.message {
				t.Errorf("%s %s: %v, want %s", c.value, c.unit, err, c.message)
			}
		case err != nil || events[0].Values[0].Type != value.Timestamp || events[0].Values[0].Num != c.ms:
			t.Errorf("%s %s: %v, %v; want %d", c.value, c.unit, events, err, c.ms)
		}
	}
}

// An event's identity is the text of a string or a number.
func TestEventID(t *testing.T) {
	d := defined.Registry(t, `
streams:
  s: {topic: events, timestamp: t, id: m.id, fields: {a: string}}
features: {}
`).NewDecoder()
	for _, c := range []struct{ members, want, message string }{
		{`"m":{"id":"x\u00e4"}`, "xä", ""},
		{`"m":{"id":1.50}`, "1.50", ""},
		{`"m":{"id":""}`, "none", ""},
		{`"m":{"id":null}`, "none", ""},
		{`"m":null`, "none", ""},
		{`"a":"x"`, "none", ""},
		{`"m":1`, "", "stream s: m: expected an object, found 1"},
		{`"m":{"id":{}}`, "", "stream s: m.id: expected a string or a number, found an object"},
		{`"m":{"id":false}`, "", "stream s: m.id: expected a string or a number, found a bool"},
		{`"m":{"id":"` + "\xff" + `"}`, "", "stream s: m.id: the string is not valid UTF-8"},
	} {
		events, err := d.Decode(event(`{"t":-1,` + c.members + `}`))
		switch {
		case c.message != "":
			if err == nil || err.Error() != c.message {
				t.Errorf("%s: %v, want %s", c.members, err, c.message)
			}
		case err != nil || (events[0].ID == nil) != (c.want == "none") || events[0].ID != nil && string(events[0].ID) != c.want:
			t.Errorf("%s: %q, %v; want %q", c.members, events[0].ID, err, c.want)
		}
	}
}

// An event belongs to the entity of its keys' values, and to none if one is null.
func TestEventEntity(t *testing.T) {
	d := defined.Registry(t, `
streams:
  s: {topic: events, timestamp: t, fields: {a: string, b: int}}
features: {}
`).NewDecoder()
	events, err := d.Decode(event(`{"t":-1,"a":"x|y","b":7}`))
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := events[0].Entity(nil, []string{"a", "b"}); !ok || string(text) != `x\|y|7` {
		t.Errorf("the entity is %s, %v; want x\\|y|7", text, ok)
	}
	if text, ok := events[0].Entity(nil, []string{"b", "c"}); ok {
		t.Errorf("an entity with a missing field is %s, want none", text)
	}
	events, err = d.Decode(event(`{"t":-1,"a":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := events[0].Entity(nil, []string{"a", "b"}); ok {
		t.Errorf("an entity with a null is %s, want none", text)
	}
}

// A record without a time is as old as its event.
func TestRecordWithoutTime(t *testing.T) {
	rec := event(`{"type":"transaction","user_id":"u","timestamp":-5000}`)
	rec.Timestamp = record.NoTime
	events, err := defined.Registry(t, twoStreams).NewDecoder().Decode(rec)
	if err != nil || len(events) != 1 || events[0].Time != -5000 || events[0].Now != -5000 {
		t.Errorf("events %+v, error %v; want one at -5000", events, err)
	}
}

// Dates that programs write where there is no time are no data, in whatever zone: null in a field, and the reason why an
// event cannot be used. Their neighbours are data.
func TestPlaceholdersOfTimes(t *testing.T) {
	for text, placeholder := range map[string]bool{
		"0001-01-01T00:00:00Z": true, "0001-01-01T00:00:00-08:00": true, "1601-01-01T00:00:00Z": true, "1753-01-01T00:00:00Z": true,
		"1900-01-01T00:00:00Z": true, "1900-01-01T00:00:00+08:00": true, "1900-01-01T00:00:00-12:00": true, "1899-12-30T00:00:00Z": true, "1900-01-03T00:00:00Z": false,
		"9999-12-31T00:00:00Z": true, "9999-12-31T23:59:59.999Z": true, "9999-12-29T00:00:00Z": false,
		"1970-01-01T00:00:00Z": false, "1969-12-31T00:00:00Z": false, "2026-01-31T00:00:00Z": false,
	} {
		d := defined.Registry(t, "streams: {s: {topic: events, timestamp: t, fields: {at: timestamp}}}\n").NewDecoder()
		rec := event(`{"t": 5, "at": "` + text + `"}`)
		rec.Timestamp = record.NoTime
		events, err := d.Decode(rec)
		if err != nil || events[0].Values[0].IsNull() != placeholder {
			t.Errorf("%s in a field is %v, error %v", text, events, err)
		}
		d = defined.Registry(t, "streams: {s: {topic: events, timestamp: {path: t, unit: rfc3339}, fields: {at: timestamp}}}\n").NewDecoder()
		rec.Value = []byte(`{"t": "` + text + `"}`)
		_, err = d.Decode(rec)
		if got := err != nil && strings.HasSuffix(err.Error(), ", a date that stands for none"); got != placeholder {
			t.Errorf("an event of %s: error %v", text, err)
		}
	}
}

// The zero times of calendars and programs are null also where they are numbers, of the Julian year 1, too. A number that is
// farther from any time, as one in another unit, is not.
func TestPlaceholdersAsNumbers(t *testing.T) {
	d := defined.Registry(t, "streams: {s: {topic: events, timestamp: t, fields: {at: timestamp}}}\n").NewDecoder()
	for number, want := range map[int64]string{
		-62135769600000: "null", -62135596800000: "null", -62135769600000 - 14*3_600_000: "null", -2208988800000: "null", 253402214400000: "null",
		-62135856000001: "poison", -62135769600000 * 1000: "poison", 9223372036825200000: "poison", 1_700_000_000_000: "value",
	} {
		events, err := d.Decode(event(fmt.Sprintf(`{"t": NOW, "at": %d}`, number)))
		got := "value"
		switch {
		case err != nil:
			got = "poison"
		case events[0].Values[0].IsNull():
			got = "null"
		}
		if got != want {
			t.Errorf("%d is %s, want %s; error %v", number, got, want, err)
		}
	}
}
