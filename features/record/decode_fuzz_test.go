package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// reference reads a field through encoding/json and math/big; ok is false for poison.
func reference(f *record.Field, v any) (value.Value, bool) {
	if v == nil {
		return value.Value{}, true
	}
	scaled := func(text string, scale int64) (int64, bool) {
		r, ok := new(big.Rat).SetString(text)
		if !ok {
			return 0, false
		}
		r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)))
		return r.Num().Int64(), r.IsInt() && r.Num().IsInt64()
	}
	number, isNumber := v.(json.Number)
	text, isText := v.(string)
	switch f.Type {
	case value.String:
		return str(text), isText
	case value.Int:
		n, ok := scaled(string(number), 0)
		return num(n), isNumber && ok
	case value.Decimal:
		if isText {
			if !json.Valid([]byte(text)) || strings.ContainsAny(text, " \t\r\n\"[{ntf") {
				return value.Value{}, false
			}
			number = json.Number(text)
		}
		n, ok := scaled(string(number), int64(f.Scale))
		return decimal(n, f.Scale), (isNumber || isText) && ok
	case value.Float:
		n, err := number.Float64()
		return value.Value{Type: value.Float, Flt: n + 0}, isNumber && err == nil
	default:
		b, ok := v.(bool)
		return expr.Truth(b), ok
	}
}

// FuzzDecode compares the decoder with encoding/json: it accepts the same texts as JSON, and finds
// the same values in them.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"e":{"t":-1},"str":"a\u00e4\ud800","int":12,"float":1.5e3,"dec":"1.50","bool":true}`,
		`{"e":{"t":-1},"str":"a","str":null,"e":{"t":-2.0,"a":{"b":"x"}}}`,
		`{"e":{"t":01}}`, `[1, 2.5e+7, {"a": [null, true, "\/"]}]`, ` {"dec": -0.0e-5 } `, `{"e":{"t":-1},"int":1e400,"dec":12345678901234567890}`,
		"{\"e\":{\"t\":-1},\"str\":\"\x7f\xff\"}", strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
		strings.Repeat("[", 10000) + strings.Repeat("]", 10000), `{"\u0065":{"t":-1}}`, "nul", "1", "-", `"`, `"\`, `"\u12`,
	} {
		f.Add([]byte(s))
	}
	fields := []record.Field{
		{Name: "str", Type: value.String, Path: []string{"str"}},
		{Name: "int", Type: value.Int, Path: []string{"int"}},
		{Name: "float", Type: value.Float, Path: []string{"float"}},
		{Name: "dec", Type: value.Decimal, Scale: 2, Path: []string{"dec"}},
		{Name: "bool", Type: value.Bool, Path: []string{"bool"}},
		{Name: "deep", Type: value.String, Path: []string{"e", "a", "b"}},
	}
	r := &features.Registry{Streams: []*record.Stream{{
		Name: "s", Topic: "events", Format: record.JSON, Timestamp: record.TimestampPath{Path: []string{"e", "t"}, Form: record.TimeForm{Unit: "ms"}}, Fields: fields,
	}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := r.NewDecoder()
		rec := &record.Record{Partition: state.Partition{Topic: "events"}, Timestamp: record.NoTime, Value: data}
		events, err := d.Decode(rec)
		var p *record.Poison
		if err != nil && !errors.As(err, &p) {
			t.Fatalf("%v is not poison", err)
		}
		if malformed := p != nil && p.Reason == record.Malformed; malformed == json.Valid(data) {
			t.Fatalf("malformed is %t, want the opposite of json.Valid", malformed)
		}
		if !utf8.Valid(data) || p != nil && p.Reason == record.Malformed {
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		var record any
		if err := decoder.Decode(&record); err != nil || hugeExponent(data) {
			return
		}
		object, ok := record.(map[string]any)
		want := make([]value.Value, len(fields))
		for i := range fields {
			v, reachable := lookup(object, fields[i].Path)
			value, sound := reference(&fields[i], v)
			want[i], ok = value, ok && reachable && sound
		}
		v, reachable := lookup(object, []string{"e", "t"})
		number, isNumber := v.(json.Number)
		ok = ok && reachable && isNumber
		if ok {
			r, _ := new(big.Rat).SetString(string(number))
			const first, end = -25566*86_400_000 + 14*3_600_000, 253402214400000 - 14*3_600_000 // others stand for no time
			ok = r.Cmp(big.NewRat(first, 1)) >= 0 && r.Cmp(big.NewRat(end, 1)) < 0
			if digits := strings.Count(string(number), "") - 1; digits > 19 {
				return // numbers with more digits than are read are refused
			}
		}
		if (err == nil) != ok {
			t.Fatalf("%s: error %v, accepted by the reference: %t", data, err, ok)
		}
		if ok && !slices.EqualFunc(events[0].Values, want, func(a, b value.Value) bool { return show(a) == show(b) }) {
			t.Fatalf("%s: %v, want %v", data, events[0].Values, want)
		}
	})
}

// hugeExponent finds numbers for which math/big would need gigabytes.
func hugeExponent(data []byte) bool {
	digits := 0
	for i, c := range data {
		if !value.IsDigit(c) {
			digits = 0
		} else if digits++; digits > 3 && i >= digits && strings.ContainsRune("eE+-", rune(data[i-digits])) {
			return true
		}
	}
	return false
}

// lookup follows a path; reachable is false if the path leads through something that is neither an object nor null.
func lookup(object map[string]any, path []string) (v any, reachable bool) {
	v = object
	for _, name := range path {
		if v == nil {
			return nil, true
		}
		o, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		v = o[name]
	}
	return v, true
}
