package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

// FuzzReadings reads any value by every way to define a field, in plain JSON and in an envelope whose messages have more
// hints: it is a value or poison.
func FuzzReadings(f *testing.F) {
	for _, value := range []string{
		`1`, `-1.5`, `1e400`, `9223372036854775808`, `true`, `null`, `""`, `"-"`, `"AeJA"`, `"1000"`, `"POINT"`, `"POINT(1 2)"`, `"1,2"`, `"\ud800"`, `"2026-01-31T10:00:00Z"`,
		`{}`, `{"scale": 2, "value": "AeJA"}`, `{"lat": 1, "lon": 2}`, `[]`, `[1, 2]`,
	} {
		f.Add([]byte(value))
	}
	var decoders []*record.Decoder
	for _, format := range []string{"json", "debezium"} {
		for _, field := range []string{
			"string", "int", "float", "bool", "decimal", "timestamp", "location",
			"{type: decimal, exponent: -2}", "{type: decimal, exponent: 3, scale: 0, round: true}", "{type: decimal, encoding: base64}",
			"{type: decimal, encoding: base64, exponent: -18, scale: 4, round: true}", "{type: decimal, encoding: base64, exponent: 2, scale: 0}",
			"{type: timestamp, unit: auto}", "{type: timestamp, unit: s}", "{type: timestamp, unit: ns}", "{type: timestamp, layout: '2006-01-02 15:04:05', tz: Europe/Berlin}",
			"{type: location, encoding: lon_lat}", "{type: location, encoding: lat_lon}", "{type: location, encoding: wkt}", "{type: location, lat: v.lat, lon: v.lng}",
			"{type: int, null_values: ['', -1], required: true}", "{type: string, max_bytes: 46}", "{type: string, expr: lower(raw)}",
		} {
			for _, lenient := range []bool{false, true} {
				decoders = append(decoders, defined.Registry(f, fmt.Sprintf(
					"streams:\n  s: {topic: events, format: %s, lenient: %t, timestamp: t, fields: {raw: {type: string, path: raw}, v: %s}}\nfeatures: {}\n", format, lenient, field)).NewDecoder())
			}
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if !json.Valid(value) {
			value, _ = json.Marshal(string(value))
		}
		for _, d := range decoders {
			rec := event(fmt.Sprintf(`{"op":"c","source":{},"after":{"t":NOW,"v":%s},"t":NOW,"v":%[1]s}`, value))
			if _, err := d.Decode(rec); err != nil && !errors.As(err, new(*record.Poison)) {
				t.Fatalf("%s: %v is not poison", value, err)
			}
		}
	})
}
