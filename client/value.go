package client

import (
	"encoding/json"
	"time"
)

// Value is a value of any type. Each accessor reports whether the value has its type; values are not converted, except
// among numbers.
type Value struct{ json json.RawMessage }

// JSON returns the value as sent; nil if there is none.
func (v Value) JSON() json.RawMessage { return v.json }

// IsNull reports that there is no value.
func (v Value) IsNull() bool { return len(v.json) == 0 || string(v.json) == "null" }

// Int returns an integer; ok is false for a number with fractional digits, and for a sum that does not fit into 64
// bits: see Number.
func (v Value) Int() (int64, bool) { return as[int64](v) }

// Float returns any number, as the nearest float64.
func (v Value) Float() (float64, bool) { return as[float64](v) }

// Number returns any number with all its digits, such as an exact decimal.
func (v Value) Number() (json.Number, bool) {
	if v.IsNull() || v.json[0] == '"' {
		return "", false
	}
	return as[json.Number](v)
}

// String returns a string.
func (v Value) String() (string, bool) { return as[string](v) }

// Bool is true or false.
func (v Value) Bool() (value, ok bool) { return as[bool](v) }

// Time returns a timestamp, sent as milliseconds since 1970.
func (v Value) Time() (time.Time, bool) {
	ms, ok := v.Int()
	if !ok {
		return time.Time{}, false
	}
	return moment(&ms), true
}

// Location returns a location, in degrees.
func (v Value) Location() (lat, lon float64, ok bool) {
	place, ok := as[struct{ Lat, Lon *float64 }](v)
	if !ok || place.Lat == nil || place.Lon == nil {
		return 0, 0, false
	}
	return *place.Lat, *place.Lon, true
}

// List returns a list, such as the values of set and last_k.
func (v Value) List() ([]Value, bool) {
	items, ok := as[[]json.RawMessage](v)
	if !ok {
		return nil, false
	}
	list := make([]Value, len(items))
	for i, item := range items {
		list[i] = Value{item}
	}
	return list, true
}

// Categories returns values by category.
func (v Value) Categories() (map[string]Value, bool) {
	wire, ok := as[map[string]json.RawMessage](v)
	if !ok {
		return nil, false
	}
	values := make(map[string]Value, len(wire))
	for category, text := range wire {
		values[category] = Value{text}
	}
	return values, true
}

// Count is a value and how often it was met.
type Count struct {
	Value Value
	Count int64
}

// Counts returns a list of values with their counts, such as that of top_k.
func (v Value) Counts() ([]Count, bool) {
	return listOf(v, func(item struct {
		Value json.RawMessage
		Count *int64
	}) (Count, bool) {
		if item.Count == nil || item.Value == nil {
			return Count{}, false
		}
		return Count{Value{item.Value}, *item.Count}, true
	})
}

// Bin is the count of numbers from From up to, but excluding, To; null is unbounded.
type Bin struct {
	From, To Value
	Count    int64
}

// Bins returns a list of bins, such as that of histogram.
func (v Value) Bins() ([]Bin, bool) {
	return listOf(v, func(item struct {
		From, To json.RawMessage
		Count    *int64
	}) (Bin, bool) {
		if item.Count == nil || item.From == nil || item.To == nil {
			return Bin{}, false
		}
		return Bin{Value{item.From}, Value{item.To}, *item.Count}, true
	})
}

// listOf converts the items of a list.
func listOf[W, T any](v Value, read func(W) (T, bool)) ([]T, bool) {
	wire, ok := as[[]W](v)
	if !ok {
		return nil, false
	}
	list := make([]T, len(wire))
	for i, w := range wire {
		if list[i], ok = read(w); !ok {
			return nil, false
		}
	}
	return list, true
}

// as decodes the value as a Go type; null has no type.
func as[T any](v Value) (value T, ok bool) {
	if v.IsNull() {
		return value, false
	}
	if err := json.Unmarshal(v.json, &value); err != nil {
		var none T
		return none, false
	}
	return value, true
}
