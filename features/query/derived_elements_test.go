package query_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// elementDefinitions have a feature of each shape, exact and from tiles, some with a cap that is soon reached, and expressions of
// their elements.
const elementDefinitions = `
streams:
  pay: {topic: t, timestamp: at, fields: {user: string, shop: string, country: string, amount: decimal}}
features:
  last: LAST_K(1h, pay, amount, user, k=4)
  countries: SET(1h, pay, user, country)
  few: SET(1h, pay, user, country, max=2)
  top: TOP_K(1h, pay, country, user, k=2)
  top_of_few: TOP_K(1h, pay, country, user, k=2, max=2)
  bins: HISTOGRAM(1h, pay, amount, user, bins=[0, 10])
  by_country: SUM(1h, pay, amount, user, per=country)
  by_few: SUM(1h, pay, amount, user, per=country, max=2)
  by_exact: AVG(1h, pay, amount, user, per=country, tile=exact)
`

var elementFeatures = []string{"last", "countries", "few", "top", "top_of_few", "bins", "by_country", "by_few", "by_exact"}

// elementsOf reads the answer of a feature as a client would: its elements, and what they are named by.
func elementsOf(t *rapid.T, a *query.Answer) (elements, keys []string) {
	d := json.NewDecoder(bytes.NewReader(a.AppendValue(nil)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if of, ok := e.(map[string]any); ok {
				elements = append(elements, fmt.Sprint(of["count"]))
				keys = append(keys, fmt.Sprint(of["value"]))
				continue
			}
			elements, keys = append(elements, fmt.Sprint(e)), append(keys, fmt.Sprint(e))
		}
	case map[string]any:
		for k, e := range v {
			elements, keys = append(elements, fmt.Sprint(e)), append(keys, k)
		}
	}
	return elements, keys
}

// Derived features of elements say what can be read in the answers of their parts, and are as exact, capped and found as these.
func TestDerivedOfElements(t *testing.T) {
	definitions := elementDefinitions
	for _, name := range elementFeatures {
		definitions += fmt.Sprintf("  %s_len: {expr: len(%s)}\n", name, name)
		if name != "countries" && name != "few" {
			definitions += fmt.Sprintf("  %s_sum: {expr: sum(%s)}\n  %s_max: {expr: max(%s), default: -1}\n", name, name, name, name)
		}
		switch name {
		case "last", "bins":
			definitions += fmt.Sprintf("  %s_first: {expr: '%s[0]'}\n", name, name)
		default:
			definitions += fmt.Sprintf("  %s_has: {expr: '\"DE\" in %s'}\n", name, name)
		}
	}
	r := defined.Registry(t, definitions)
	rapid.Check(t, func(t *rapid.T) {
		mapper, store, now := r.NewMapper(), memory.New(), int64(1_700_000_000_000)
		for i := range rapid.IntRange(0, 12).Draw(t, "events") {
			event := fmt.Appendf(nil, `{"at":%d,"user":"u","shop":"s","country":%s,"amount":%s}`, now-int64(i),
				rapid.SampledFrom([]string{`"DE"`, `"FR"`, `"AT"`, `"Ä"`, "null", `""`}).Draw(t, "country"),
				rapid.SampledFrom([]string{"0", "1", "-1.5", "10", "92233720368547758.07", "-92233720368547758.08", "null"}).Draw(t, "amount"))
			var b state.Batch
			b.Ranges = make([]state.PartitionRange, 1)
			_, err := mapper.Map(&record.Record{Partition: state.Partition{Topic: "t"}, Offset: int64(i), Timestamp: now, Value: event}, 0, &b)
			if err == nil {
				err = store.Apply(t.Context(), &b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		answers := map[string]*query.Answer{}
		var reading query.Reading
		reading.Reset(now)
		for _, f := range r.Features {
			reading.Want(f, "u", now)
		}
		if err := reading.Read(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Features {
			answers[f.Name] = new(query.Answer)
			reading.Next(answers[f.Name])
		}
		check := func(name, want string) {
			a, ok := answers[name]
			if !ok {
				return
			}
			if got := string(a.AppendValue(nil)); got != want {
				t.Fatalf("%s is %s, want %s", name, got, want)
			}
		}
		for _, name := range elementFeatures {
			of := answers[name]
			elements, keys := elementsOf(t, of)
			sum, greatest, has := new(big.Rat), (*big.Rat)(nil), false
			for i, e := range elements {
				if n, ok := new(big.Rat).SetString(e); ok {
					if sum.Add(sum, n); greatest == nil || n.Cmp(greatest) > 0 {
						greatest = n
					}
				}
				has = has || keys[i] == "DE"
			}
			withheld := of.Capped && len(elements) == 0 // then not even a default stands
			number := func(n *big.Rat) string {
				switch {
				case withheld:
					return "null"
				case n == nil:
					return "-1"
				}
				text := n.FloatString(2)
				return string(bytes.TrimRight(bytes.TrimRight([]byte(text), "0"), "."))
			}
			if name == "by_exact" { // floats
				continue
			}
			if withheld {
				check(name+"_len", "null")
			} else {
				check(name+"_len", fmt.Sprint(len(elements)))
			}
			whole := number(sum)
			if sum.IsInt() && !withheld {
				whole = sum.Num().String()
			}
			check(name+"_sum", whole)
			most := number(greatest)
			if greatest != nil && greatest.IsInt() {
				most = greatest.Num().String()
			}
			check(name+"_max", most)
			switch {
			case has:
				check(name+"_has", "true")
			case of.Capped:
				check(name+"_has", "null")
			default:
				check(name+"_has", "false")
			}
			if first, ok := answers[name+"_first"]; ok {
				want := "null"
				if len(elements) > 0 {
					want = elements[0]
				}
				if got := string(first.AppendValue(nil)); got != want {
					t.Fatalf("%s_first is %s, want %s", name, got, want)
				}
			}
			for _, suffix := range []string{"_len", "_sum", "_max", "_has", "_first"} {
				d, ok := answers[name+suffix]
				if !ok {
					continue
				}
				if d.Capped != of.Capped || d.Exact != of.Exact || d.From != of.From || d.To != of.To || d.StandardError != of.StandardError {
					t.Fatalf("%s%s: %+v, of %+v", name, suffix, d, of)
				}
				if d.Status != of.Status && (d.Status != query.NullValue || string(d.AppendValue(nil)) != "null") {
					t.Fatalf("%s%s has the status %s, its part %s", name, suffix, d.Status, of.Status)
				}
			}
		}
	})
}

// The event in hand has a long text whole, and the state keeps its beginning and a hash: they are the same value.
func TestDerivedOfLongTexts(t *testing.T) {
	r := defined.Registry(t, `
streams:
  pay: {topic: t, timestamp: at, fields: {user: string, shop: {type: string, max_bytes: 100}, amount: int}}
features:
  last: LAST(1h, pay, shop, user)
  known: SET(1h, pay, user, shop)
  sums: SUM(1h, pay, amount, user, per=shop)
  top: TOP_K(1h, pay, shop, user, k=3)
  lasts: LAST_K(1h, pay, shop, user, k=3)
  same: {expr: event.shop == last, stream: pay}
  turned: {expr: last == event.shop, stream: pay}
  differs: {expr: event.shop != last, stream: pay}
  is_in: {expr: event.shop in known, stream: pay}
  is_new: {expr: event.shop not in known, stream: pay}
  is_late: {expr: event.shop in lasts, stream: pay}
  is_top: {expr: event.shop in top, stream: pay}
  sum: {expr: 'sums[event.shop] ?? 0', stream: pay}
  count: {expr: 'top[event.shop] ?? 0', stream: pay}
  whole: {expr: 'len(event.shop) + 0 * len(known)', stream: pay}
  named: {expr: 'last in ["`+strings.Repeat("é", 150)+`"]'}
`)
	long, now := strings.Repeat("é", 150), int64(1_700_000_000_000)
	event := func(shop string) (*state.Batch, *record.Event) {
		batch := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
		out, err := r.NewMapper().Map(&record.Record{
			Partition: state.Partition{Topic: "t"}, Timestamp: now, Value: fmt.Appendf(nil, `{"at":%d,"user":"u","shop":%q,"amount":7}`, now, shop),
		}, 0, batch)
		if err != nil {
			t.Fatal(err)
		}
		return batch, out.Events[0].Clone()
	}
	store := memory.New()
	batch, _ := event(long)
	if err := store.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	short := string(value.Shorten(nil, []byte(long), 100))
	no := map[string]string{"same": "false", "turned": "false", "differs": "true", "is_in": "false", "is_new": "true", "is_late": "false", "is_top": "false", "sum": "0", "count": "0"}
	yes := map[string]string{"same": "true", "turned": "true", "differs": "false", "is_in": "true", "is_new": "false", "is_late": "true", "is_top": "true", "sum": "7", "count": "1"}
	for shop, want := range map[string]map[string]string{
		long: yes, short: yes, long + "é": no, long[:len(long)-2] + "e": no, long[:100]: no, short[:len(short)-1] + "-": no,
	} {
		_, inHand := event(shop)
		var reading query.Reading
		reading.Reset(now)
		reading.SetInHand(inHand)
		for _, f := range r.Features {
			reading.Want(f, "u", now)
		}
		if err := reading.Read(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Features {
			var a query.Answer
			reading.Next(&a)
			expected, ok := want[f.Name]
			switch f.Name {
			case "whole":
				expected, ok = fmt.Sprint(utf8.RuneCountInString(shop)), true
			case "named":
				expected, ok = "true", true
			}
			if got := string(a.AppendValue(nil)); ok && got != expected {
				t.Errorf("%q: %s is %s, want %s", shop, f.Name, got, expected)
			}
		}
	}
}
