package record_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

const elementStreams = `
streams:
  line:
    topic: events
    each: order.items
    match: order.items.kind == nil or order.items.kind != "gift"
    timestamp: t
    id: order.id
    fields: {user: string, sku: {type: string, path: order.items.sku}, price: {type: decimal, path: order.items.price}, city: {type: string, path: order.items.to.city},
      place: {type: location, path: order.items.at}}
  own:
    topic: events
    each: parts
    timestamp: {path: parts.t, unit: s}
    id: parts.id
    fields: {user: string, twice: {type: int, expr: n * 2}, n: {type: int, path: parts.n}}
  tag:
    topic: events
    each: tags
    timestamp: t
    id: order.id
    fields: {tag: {type: string, path: tags}, user: string}
  whole: {topic: events, timestamp: t, fields: {user: string}}
features: {}
`

func elementDecoder(t testing.TB) *record.Decoder {
	return defined.Registry(t, strings.Replace(elementStreams, "{user: string, twice: {type: int, expr: n * 2}, n: {type: int, path: parts.n}}",
		"{user: string, n: {type: int, path: parts.n}, twice: {type: int, expr: n * 2}}", 1)).NewDecoder()
}

// outline writes events on one line each.
func outline(events []record.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s %d %s:", e.Stream.Name, e.Time-recorded, e.ID)
		for _, v := range e.Values {
			fmt.Fprintf(&b, " %s", show(v))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestElements(t *testing.T) {
	d := elementDecoder(t)
	for in, want := range map[string]string{
		``:                              "whole 0 : string u\n",
		`"order":{"id":"o","items":[]}`: "whole 0 : string u\n",
		`"order":{"id":"o","items":null},"parts":null`:               "whole 0 : string u\n",
		`"order":{"id":"o","items":[{"sku":"a","price":1.5}]}`:       "line 0 o/0: string u string a decimal 1.5 null null\nwhole 0 : string u\n",
		`"order":{"items":[{"sku":"a"}]}`:                            "line 0 : string u string a null null null\nwhole 0 : string u\n",
		`"order":{"id":7,"items":[{"sku":"a"}, null ,{"sku":"b"} ]}`: "line 0 7/0: string u string a null null null\nline 0 7/2: string u string b null null null\nwhole 0 : string u\n",
		`"order":{"id":7,"items":[{"sku":"a","kind":"gift"},{"sku":"b","kind":"x","to":{"city":"\u0041\n"},"at":{"lat":1,"lon":2}},{}]}`: "line 0 7/1: string u string b null string A\n location 1,2\n" +
			"line 0 7/2: string u null null null null\nwhole 0 : string u\n",
		`"parts":[{"t":1699999999,"id":"x","n":1},{"t":1699999998,"id":"y","n":2}]`: "own -1000 x: string u int 1 int 2\nown -2000 y: string u int 2 int 4\nwhole 0 : string u\n",
		`"order":{"id":"o"},"tags":["a","\"b\"",""]`:                                "tag 0 o/0: string a string u\ntag 0 o/1: string \"b\" string u\ntag 0 o/2: string  string u\nwhole 0 : string u\n",
		`"order":{"items":[{}],"items":[{"sku":"last"}]}`:                           "line 0 : string u string last null null null\nwhole 0 : string u\n",

		`"order":{"items":{}}`:                                           "stream line: order.items: expected an array, found an object",
		`"order":{"items":"[]"}`:                                         "stream line: order.items: expected an array, found a string",
		`"order":[]`:                                                     "stream line: order: expected an object, found an array",
		`"order":{"items":[5]}`:                                          "stream line: order.items: expected an object, found 5",
		`"order":{"items":[{"sku":1}]}`:                                  "stream line: order.items.sku: expected a string, found 1",
		`"order":{"items":[{"to":[]}]}`:                                  "stream line: order.items.to: expected an object, found an array",
		`"parts":[{"t":1699999999,"n":1},{"n":2}]`:                       "stream own: parts.t: the event has no timestamp",
		`"parts":[{"t":1699999999,"n":5e18}]`:                            "stream own: twice: the result of a calculation is too large",
		`"tags":[` + strings.Repeat(`"a",`, record.MaxElements) + `"b"]`: "stream tag: tags: the array has more than 1000 elements",
	} {
		if in != "" {
			in = "," + in
		}
		rec := event(`{"t":NOW,"user":"u"` + in + `}`)
		events, err := d.Decode(rec)
		got := outline(events)
		if err != nil {
			got = err.Error()
		} else if n := testing.AllocsPerRun(10, func() { _, _ = d.Decode(rec) }); n > 0 {
			t.Errorf("%s: %v allocations, want none", in, n)
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", in, got, want)
		}
	}
	if events, err := d.Decode(event(`{"t":NOW,"tags":[` + strings.Repeat(`"a",`, record.MaxElements-1) + `"b"]}`)); err != nil || len(events) != record.MaxElements+1 {
		t.Errorf("%d events of as many elements as there may be, error %v", len(events), err)
	}
}

// Each element is decoded as it is when it is the record's only one, whatever the others are.
func TestElementsAreIndependent(t *testing.T) {
	all, one := elementDecoder(t), elementDecoder(t)
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any {
			item := map[string]any{}
			for _, name := range []string{"sku", "kind", "price", "more"} {
				if rapid.Bool().Draw(t, "has "+name) {
					item[name] = rapid.SampledFrom([]any{nil, "", "gift", "a\"\\\u2028é", []any{map[string]any{"sku": "inner"}}, map[string]any{"sku": "x"}}).Draw(t, name)
				}
			}
			if _, text := item["price"].(string); text {
				item["price"] = rapid.SampledFrom([]any{1, "2.5", -1e3}).Draw(t, "number")
			}
			return rapid.SampledFrom([]any{item, nil}).Draw(t, "item")
		}), 0, 6).Draw(t, "items")
		decode := func(d *record.Decoder, items ...any) (string, error) {
			text, err := json.Marshal(map[string]any{"t": recorded, "user": "u", "order": map[string]any{"id": "o", "items": items}})
			if err != nil {
				t.Fatal(err)
			}
			events, err := d.Decode(event(string(text)))
			return strings.TrimSuffix(outline(events), "whole 0 : string u\n"), err
		}
		want, failed := "", error(nil)
		for i, item := range items {
			alone, err := decode(one, item)
			if failed == nil {
				failed = err
			}
			want += strings.Replace(alone, " o/0:", fmt.Sprintf(" o/%d:", i), 1)
		}
		got, err := decode(all, items...)
		if fmt.Sprint(err) != fmt.Sprint(failed) || err == nil && got != want {
			t.Fatalf("%v:\n%s, error %v\nwant\n%s, error %v", items, got, err, want, failed)
		}
	})
}

// Rows and data of envelopes have arrays, too.
func TestElementsInEnvelopes(t *testing.T) {
	for format, in := range map[string]string{
		"json":        `{"t":NOW,"items":[{"sku":"a"},{"sku":"b"}]}`,
		"debezium":    `{"op":"c","after":{"t":NOW,"items":[{"sku":"a"},{"sku":"b"}]}}`,
		"cloudevents": `{"specversion":"1.0","data":{"t":NOW,"items":[{"sku":"a"},{"sku":"b"}]}}`,
		"json_schema": "\x00\x00\x00\x00\x01" + `{"t":NOW,"items":[{"sku":"a"},{"sku":"b"}]}`,
	} {
		d := defined.Registry(t, "streams:\n  s: {topic: events, format: "+format+", each: items, timestamp: t, fields: {sku: {type: string, path: items.sku}}}\nfeatures: {}\n").NewDecoder()
		events, err := d.Decode(event(in))
		if got, want := outline(events), "s 0 : string a\ns 0 : string b\n"; err != nil || got != want {
			t.Errorf("%s: %s, error %v; want %s", format, got, err, want)
		}
	}
}

// A text that an expression makes of an element is that of this element, and not of those after it.
func TestDerivedTextsOfElements(t *testing.T) {
	d := defined.Registry(t, `
streams:
  line: {topic: events, each: items, timestamp: t, id: id, fields: {raw: {type: string, path: items}, loud: {type: string, expr: upper(raw)}, both: {type: string, expr: raw + loud}}}
features: {}
`).NewDecoder()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.StringMatching(`[a-z]{0,9}`), 0, 9).Draw(t, "items")
		text, _ := json.Marshal(items)
		want := ""
		for i, item := range items {
			want += fmt.Sprintf("line 0 o/%d: string %s string %s string %s\n", i, item, strings.ToUpper(item), item+strings.ToUpper(item))
		}
		events, err := d.Decode(event(`{"t":NOW,"id":"o","items":` + string(text) + `}`))
		if got := outline(events); err != nil || got != want {
			t.Fatalf("%s: error %v\n%swant\n%s", text, err, got, want)
		}
	})
}
