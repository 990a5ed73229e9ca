package record_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/value"
)

// Each reads a value by the definition of a field.
func TestReadings(t *testing.T) {
	for _, c := range []struct{ field, value, want string }{
		{"{type: int, lenient: true}", `"-12"`, "int -12"},
		{"{type: int, lenient: true}", `"1.0"`, "int 1"},
		{"{type: int, lenient: true}", `1`, "int 1"},
		{"{type: int, lenient: true}", `"1.5"`, "expected a 64-bit integer, found a string"},
		{"{type: int, lenient: true}", `""`, "expected a 64-bit integer, found an empty text"},
		{"{type: int, lenient: true}", `" 1"`, "expected a 64-bit integer, found a string"},
		{"{type: int, lenient: true}", `true`, "expected a 64-bit integer, found a bool"},
		{"{type: float, lenient: true}", `"1e-3"`, "float 0.001"},
		{"{type: float, lenient: true}", `"NaN"`, "expected a number that a 64-bit float holds, found a string"},
		{"{type: bool, lenient: true}", `"True"`, "bool true"},
		{"{type: bool, lenient: true}", `"0"`, "bool false"},
		{"{type: bool, lenient: true}", `1`, "bool true"},
		{"{type: bool, lenient: true}", `2`, "expected a bool, found 2"},
		{"{type: bool, lenient: true}", `"yes"`, "expected a bool, found a string"},
		{"{type: timestamp, lenient: true}", `"1700000000000"`, "timestamp 1700000000000"},
		{"{type: timestamp, lenient: true}", `"2023-11-14T22:13:20Z"`, "timestamp 1700000000000"},
		{"{type: timestamp, unit: s, lenient: true}", `"1700000000.5"`, "timestamp 1700000000500"},
		{"{type: timestamp, unit: s}", `"1700000000.5"`, "expected a timestamp (s), found a string, which `lenient: true` reads"},
		{"{type: location, lenient: true}", `{"lat":"1.5","lon":2}`, "location 1.5,2"},
		{"{type: location, lat: a, lon: o, lenient: true}", `{}`, "null"},

		{"{type: string, null_values: ['', N/A, 0]}", `""`, "null"},
		{"{type: string, null_values: ['', N/A, 0]}", `"N/A"`, "null"},
		{"{type: string, null_values: ['', N/A, 0]}", `"n/a"`, "string n/a"},
		{"{type: string, null_values: ['', N/A, 0], required: true}", `"N/A"`, "the field v is required"},
		{"{type: int, null_values: ['', -1]}", `-1`, "null"},
		{"{type: int, null_values: ['', -1]}", `""`, "null"},
		{"{type: int, null_values: ['', -1]}", `0`, "int 0"},
		{"{type: timestamp, null_values: [2000-01-01T00:00:00Z]}", `"2000-01-01T00:00:00Z"`, "null"},
		{"{type: bool, null_values: ['true']}", `true`, "bool true"},

		{"{type: decimal, exponent: -2}", `1234`, "decimal 12.34"},
		{"{type: decimal, exponent: -2}", `"1234"`, "decimal 12.34"},
		{"{type: decimal, exponent: -2}", `1.5`, "expected a 64-bit decimal with at most 2 digits after the decimal point, found 1.5, which `round: true` rounds"},
		{"{type: decimal, exponent: 3, scale: 0}", `1.5`, "decimal 1500"},
		{"{type: decimal, exponent: -18, scale: 8, round: true}", `"1234567890123456789012345678"`, "decimal 1234567890.12345679"},
		{"{type: decimal, exponent: -18, scale: 8}", `"1234567890120000000000000000"`, "decimal 1234567890.12"},
		{"{type: decimal, scale: 6, round: true}", `12345.678901234567890123`, "decimal 12345.678901"},
		{"{type: decimal, scale: 2, round: true}", `"-0.005"`, "decimal -0.01"},
		{"{type: decimal, scale: 2, round: true}", `"0.0049999"`, "decimal 0"},
		{"{type: decimal, scale: 18, round: true}", `9.3`, "expected a decimal of at most 64 bits with 18 digits after the decimal point, found 9.3"},
		{"{type: decimal, scale: 18}", `9.2233720368547758`, "decimal 9.2233720368547758"},
		{"{type: decimal, round: true}", `"1,5"`, "expected a decimal of at most 64 bits with 2 digits after the decimal point, found a string that is not one"},
		{"{type: decimal, encoding: base64, exponent: -18, scale: 4, round: true}", `"BWvHXi1jEAAA"`, "decimal 100"},
		{"{type: decimal, encoding: base64, exponent: -18, scale: 4, round: true}", `{"scale": 20, "value": "BWvHXi1jEAAB"}`, "decimal 1"},
		{"{type: decimal, encoding: base64, exponent: -18, scale: 4}", `"BWvHXi1jEAAB"`, "expected a decimal of at most 64 bits in base64, found a string, which `round: true` rounds"},

		{"{type: location, encoding: lon_lat}", `[13.4, 52.5]`, "location 52.5,13.4"},
		{"{type: location, encoding: lon_lat}", `[13.4, 52.5, 34]`, "location 52.5,13.4"},
		{"{type: location, encoding: lat_lon}", `[52.5, 13.4]`, "location 52.5,13.4"},
		{"{type: location, encoding: lat_lon}", `"52.5,13.4"`, "location 52.5,13.4"},
		{"{type: location, encoding: lon_lat}", `"(13.4, 52.5)"`, "location 52.5,13.4"},
		{"{type: location, encoding: lon_lat}", `[113.4, 92.5]`, "expected a location ([lon, lat], or a text of these), found an array"},
		{"{type: location, encoding: lon_lat}", `[13.4]`, "expected a location ([lon, lat], or a text of these), found an array"},
		{"{type: location, encoding: lat_lon}", `[52.5, null]`, "expected a location ([lat, lon], or a text of these), found an array"},
		{"{type: location, encoding: lat_lon}", `{"lat": 1, "lon": 2}`, "expected a location ([lat, lon], or a text of these), found an object"},
		{"{type: location, encoding: wkt}", `"POINT(13.4 52.5)"`, "location 52.5,13.4"},
		{"{type: location, encoding: wkt}", `"SRID=4326; point Z ( 13.4  52.5 -3 )"`, "location 52.5,13.4"},
		{"{type: location, encoding: wkt}", `"POINT EMPTY"`, "null"},
		{"{type: location, encoding: wkt}", `"POINT(13.4, 52.5)"`, "expected a location (a text such as POINT(13.4 52.5), the longitude first), found a string"},
		{"{type: location, encoding: wkt}", `"LINESTRING(1 2, 3 4)"`, "expected a location (a text such as POINT(13.4 52.5), the longitude first), found a string"},
		{"{type: location, encoding: wkt}", `[13.4, 52.5]`, "expected a location (a text such as POINT(13.4 52.5), the longitude first), found an array"},
		{"{type: location, encoding: wkt}", `null`, "null"},

		{"{type: location, lat: v.latitude, lon: v.lng}", `{"latitude": 52.5, "lng": 13.4}`, "location 52.5,13.4"},
		{"{type: location, lat: v.latitude, lon: v.lng}", `{"latitude": null}`, "null"},
		{"{type: location, lat: v.lat, lon: v.lon}", `{"lat": null, "lon": null}`, "null"},
		{"{type: location, lat: v.latitude, lon: v.lng, required: true}", `{}`, "the field v is required"},
		{"{type: location, lat: v.latitude, lon: v.lng}", `null`, "null"},
		{"{type: location, lat: v.latitude, lon: v.lng}", `1`, "v: expected an object, found 1"},
		{"{type: location, lat: v.latitude, lon: v.lng}", `{"latitude": 52.5}`, "v.lng: expected a longitude of the location v, a number from -180 to 180, found nothing"},
		{"{type: location, lat: v.latitude, lon: v.lng}", `{"latitude": "52.5", "lng": 13.4}`, "v.latitude: expected a latitude of the location v, a number from -90 to 90, found a string"},
		{"{type: location, lat: v.latitude, lon: v.lng}", `{"latitude": 90.1, "lng": 13.4}`, "v.latitude: expected a latitude of the location v, a number from -90 to 90, found 90.1"},

		{`{type: string, path: 'v["client.ip"]'}`, `{"client.ip": "a", "client": {"ip": "b"}}`, "string a"},
		{`{type: string, path: v.client.ip}`, `{"client.ip": "a", "client": {"ip": "b"}}`, "string b"},
		{`{type: string, path: '["v"]["a b"].c'}`, `{"a b": {"c": "x"}}`, "string x"},
	} {
		r := defined.Registry(t, "streams:\n  s: {topic: events, timestamp: t, fields: {v: "+c.field+"}}\nfeatures: {}\n")
		rec := event(`{"t":NOW,"v":` + c.value + `}`)
		d := r.NewDecoder()
		events, err := d.Decode(rec)
		got := fmt.Sprint(err)
		if err == nil {
			got = show(events[0].Values[0])
			if n := testing.AllocsPerRun(10, func() { _, _ = d.Decode(rec) }); n > 0 {
				t.Errorf("%s of %s: %v allocations, want none", c.field, c.value, n)
			}
		}
		if want := c.want; got != want && !strings.HasSuffix(got, ": "+want) {
			t.Errorf("%s of %s: %s, want %s", c.field, c.value, got, want)
		}
	}
}

// An option of a stream holds for its time and all fields, unless a field says otherwise.
func TestLenientStream(t *testing.T) {
	r := defined.Registry(t, `
streams:
  s: {topic: events, lenient: true, timestamp: {path: t, unit: s}, fields: {n: int, f: float, strict: {type: int, lenient: false}, name: string}}
features: {}
`)
	d := r.NewDecoder()
	events, err := d.Decode(event(`{"t":"1700000000","n":"1","f":"1.5","strict":2,"name":"3"}`))
	if err != nil || events[0].Time != recorded {
		t.Fatalf("%v, error %v", events, err)
	}
	var got []string
	for _, v := range events[0].Values {
		got = append(got, show(v))
	}
	if want := "int 1, float 1.5, int 2, string 3"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	_, err = d.Decode(event(`{"t":"1700000000","strict":"2"}`))
	if want := "stream s: strict: expected a 64-bit integer, found a string, which `lenient: true` reads"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A lenient field reads a text as it reads the value in it, and refuses no more.
func TestLenientTexts(t *testing.T) {
	for _, typ := range []string{"int", "float", "decimal", "timestamp"} {
		strict := defined.Registry(t, "streams:\n  s: {topic: events, timestamp: t, fields: {v: "+typ+"}}\nfeatures: {}\n").NewDecoder()
		lenient := defined.Registry(t, "streams:\n  s: {topic: events, lenient: true, timestamp: t, fields: {v: "+typ+"}}\nfeatures: {}\n").NewDecoder()
		rapid.Check(t, func(t *rapid.T) {
			number := rapid.OneOf(
				rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,3})?([eE]-?[0-9])?`),
				rapid.Map(rapid.Float64(), func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }),
			).Draw(t, "number")
			if !json.Valid([]byte(number)) {
				return
			}
			want, wantErr := strict.Decode(event(`{"t":NOW,"v":` + number + `}`))
			var typed value.Value
			if wantErr == nil {
				typed = want[0].Values[0]
			}
			got, err := lenient.Decode(event(`{"t":NOW,"v":"` + number + `"}`))
			if (err == nil) != (wantErr == nil) || err == nil && show(got[0].Values[0]) != show(typed) {
				t.Fatalf("%s as %s in a text: %v, error %v; want %v, error %v", number, typ, got, err, show(typed), wantErr)
			}
		})
	}
}

// Digits in base64 are the number that they encode, of any length.
func TestGreatIntegersInBase64(t *testing.T) {
	d := defined.Registry(t, "streams:\n  s: {topic: events, timestamp: t, fields: {v: {type: decimal, scale: 0, encoding: base64, exponent: -40, round: true}}}\nfeatures: {}\n").NewDecoder()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.SliceOfN(rapid.Byte(), 1, 24).Draw(t, "digits")
		n := new(big.Int).SetBytes(digits)
		if digits[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(digits))))
		}
		text, _ := json.Marshal(digits)
		events, err := d.Decode(event(`{"t":NOW,"v":` + string(text) + `}`))
		want, how, _ := value.Nearest([]byte(n.String()), -40)
		if (how == value.Overflow) != (err != nil) || err == nil && events[0].Values[0].Num != want {
			t.Fatalf("%s is %v, error %v; want %d", n, events, err, want)
		}
	})
}

// A point is read as it was written.
func TestPoints(t *testing.T) {
	registry := func(encoding string) string {
		return "streams:\n  s: {topic: events, timestamp: t, fields: {v: {type: location, encoding: " + encoding + "}}}\nfeatures: {}\n"
	}
	lonLat, latLon, wkt := defined.Registry(t, registry("lon_lat")).NewDecoder(), defined.Registry(t, registry("lat_lon")).NewDecoder(), defined.Registry(t, registry("wkt")).NewDecoder()
	rapid.Check(t, func(t *rapid.T) {
		lat, lon := rapid.Float64Range(-90, 90).Draw(t, "lat"), rapid.Float64Range(-180, 180).Draw(t, "lon")
		want := value.Value{Type: value.Location, Flt: lat + 0, Lon: lon + 0}
		space := rapid.SampledFrom([]string{"", " ", "\t "}).Draw(t, "space")
		a, o := strconv.FormatFloat(lat, 'g', -1, 64), strconv.FormatFloat(lon, 'g', -1, 64)
		for _, e := range []struct {
			*record.Decoder
			text string
		}{
			{lonLat, fmt.Sprintf("[%s,%s%s]", o, strings.TrimSpace(space), a)},
			{latLon, fmt.Sprintf("[%s,%s]", a, o)},
			{latLon, strconv.Quote(space + a + "," + o + space)},
			{wkt, strconv.Quote("POINT" + space + "(" + o + " " + space + a + ")")},
		} {
			events, err := e.Decode(event(`{"t":NOW,"v":` + e.text + `}`))
			if err != nil || show(events[0].Values[0]) != show(want) {
				t.Fatalf("%s: %v, error %v, want %v", e.text, events, err, show(want))
			}
		}
	})
}
