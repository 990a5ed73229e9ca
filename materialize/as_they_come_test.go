package materialize

import (
	"strings"
	"testing"
)

// Events in the forms that other systems write are the same in lines of JSON and in a CSV.
func TestEventsAsTheyCome(t *testing.T) {
	for name, c := range map[string]struct{ stream, lines, csv, features, want string }{
		"times": {
			`timestamp: {path: at, layout: 02.01.2006 15:04:05, tz: Europe/Berlin}
    fields: {user: string, seen: {type: timestamp, unit: auto, tz: Asia/Shanghai}, opened: {type: timestamp, tz: America/New_York}}`,
			`{"id":1,"at":"31.01.2026 11:00:00","user":"u","seen":"1769853600","opened":"2026-01-31 05:00"}
{"id":2,"at":"25.10.2026 02:30:00","user":"u","seen":"2026-01-31 18:00:00","opened":"0001-01-01T00:00:00+01:00"}
`,
			`id,at,user,seen,opened
1,31.01.2026 11:00:00,u,1769853600,2026-01-31 05:00
2,25.10.2026 02:30:00,u,2026-01-31 18:00:00,0001-01-01T00:00:00+01:00
`,
			`
  seen: LAST(lifetime, s, seen, user)
  at: IDLE_SINCE(lifetime, s, user)
  opened: LAST(lifetime, s, opened, user)`,
			"id,at,opened,seen\n1,1769853600000,1769853600000,1769853600000\n2,1792888200000,1769853600000,1769853600000\n",
		},
		"texts": {
			`lenient: true
    timestamp: {path: '["@time"]', unit: s}
    match: $env["user.kind"] == "a"
    fields:
      user: {type: string, path: '["user.id"]', null_values: ["-"]}
      n: {type: int, null_values: [""]}
      ok: bool
      wei: {type: decimal, scale: 6, exponent: -18, round: true}
      home: {type: location, lat: home.latitude, lon: home.lng}
      work: {type: location, encoding: wkt}
      shop: {type: location, encoding: lat_lon}`,
			`{"id":1,"@time":"1769853600","user.kind":"a","user.id":"u","n":"7","ok":"1","wei":"12345678901234567890123","home":{"latitude":"1","lng":2},"work":"POINT(4 3)","shop":"5,6"}
{"id":2,"@time":1769853601,"user.kind":"a","user.id":"-","n":"","ok":"true","wei":null,"home":null,"work":null,"shop":null}
{"id":3,"@time":1769853602,"user.kind":"a","user.id":"u","n":"","ok":0,"wei":1500000000000000000,"home":{},"work":"POINT EMPTY","shop":null}
`,
			`id,@time,user.kind,user.id,n,ok,wei,home.latitude,home.lng,work,shop
1,1769853600,a,u,7,1,12345678901234567890123,1,2,POINT(4 3),"5,6"
2,1769853601,a,-,"",true,,,,,
3,1769853602,a,u,"",0,1500000000000000000,,,POINT EMPTY,
`,
			`
  n: SUM(lifetime, s, n, user)
  ok: COUNT(lifetime, s, user, where=ok)
  wei: SUM(lifetime, s, wei, user)
  home: LAST(lifetime, s, home, user)
  work: LAST(lifetime, s, work, user)
  shop: LAST(lifetime, s, shop, user)`,
			"id,home,n,ok,shop,wei,work\n1,\"1,2\",7,1,\"5,6\",12345.678901,\"3,4\"\n2,,,,,,\n3,\"1,2\",7,1,\"5,6\",12347.178901,\"3,4\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := load(t, "streams:\n  s:\n    topic: t\n    id: id\n    "+c.stream+"\nfeatures:"+c.features+"\n")
			for format, in := range map[string]string{"ndjson": c.lines, "csv": c.csv} {
				var columns []string
				for _, f := range r.Features {
					columns = append(columns, f.Name)
				}
				got, _, err := materialize(t, r, "s", format, in, columns...)
				if err != nil || got != c.want {
					t.Errorf("%s: %v\ngot\n%s\nwant\n%s", format, err, got, c.want)
				}
			}
		})
	}
}

// A record that makes several events makes as many rows, of which each counts those before it.
func TestRowsOfElements(t *testing.T) {
	r := load(t, `
streams:
  line:
    topic: orders
    id: id
    timestamp: at
    each: items
    match: items.kind != "gift"
    fields: {user: string, sku: {type: string, path: items.sku}, price: {type: int, path: items.price}}
features:
  n: COUNT(lifetime, line, user)
  skus: COUNT_DISTINCT(lifetime, line, user, sku)
  dear: SUM(lifetime, line, price, user, where='price > 5')
`)
	const lines = `{"id":1,"at":1769853600000,"came":1769853600500,"user":"u","items":[{"sku":"a","price":6,"kind":"x"},{"sku":"b","price":5,"kind":"x"},{"sku":"g","price":50,"kind":"gift"},{"sku":"a","price":7,"kind":"x"}]}
{"id":2,"at":1769853601000,"came":1769853601500,"user":"u","items":[]}
{"id":3,"at":1769853602000,"came":1769853602500,"user":"u","items":[{"sku":"c","price":8,"kind":"x"}]}
`
	want := `id,sku,n,skus,dear
1/0,a,1,1,6
1/1,b,2,2,6
1/3,a,3,2,13
3/0,c,4,3,21
`
	m := making{Registry: r, stream: "line", inputs: []text{{"line", "in.ndjson", lines}}, names: []string{"sku", "n", "skus", "dear"}}
	for _, m.recordTime = range []string{"", "came"} {
		m.asServed = m.recordTime != ""
		if got, _, err := m.run(t); err != nil || got != want {
			t.Errorf("as served %v: %v\ngot\n%s\nwant\n%s", m.asServed, err, got, want)
		}
	}
	_, _, err := materialize(t, r, "line", "csv", "id,at,user,items.sku\n", "skus")
	if want := "in.csv:1: stream line makes an event of each element of items, and rows of a table have no arrays: give lines of JSON"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A row counts what its record makes for other streams, also of elements, whatever the streams are called; and nothing of that
// record if its event is left out. Of a later record of the same millisecond it counts nothing.
func TestElementsBesideOtherStreams(t *testing.T) {
	const definitions = `
streams:
  LINE:  {topic: baskets, each: items, id: id, timestamp: at, fields: {user: string, v: {type: int, path: items.v}}}
  ORDER: {topic: baskets, id: id, timestamp: at, fields: {user: string}}
features:
  sum: SUM(1h, LINE, v, user)
  orders: COUNT(1h, ORDER, user)
`
	const lines = `{"topic":"baskets","value":{"id":"b1","at":1700000000000,"user":"u","items":[{"v":1},{"v":2}]},"timestamp":1700000000000}
{"topic":"baskets","value":{"id":"b2","at":1700000001000,"user":"u","items":[{"v":4},{"v":8}]},"timestamp":1700000001000}
`
	for _, c := range []struct {
		stream  string
		exclude bool
		want    string
	}{
		{"LINE", false, "id,sum,orders\nb1/0,1,1\nb1/1,3,1\nb2/0,7,2\nb2/1,15,2\n"},
		{"LINE", true, "id,sum,orders\nb1/0,0,0\nb1/1,1,0\nb2/0,3,1\nb2/1,7,1\n"},
		{"ORDER", false, "id,sum,orders\nb1,3,1\nb2,15,2\n"},
		{"ORDER", true, "id,sum,orders\nb1,0,0\nb2,3,1\n"},
	} {
		for _, names := range [][]string{{"LINE", "a", "ORDER", "b"}, {"LINE", "b", "ORDER", "a"}} {
			named := strings.NewReplacer(names...)
			m := making{
				Registry: load(t, named.Replace(definitions)), stream: named.Replace(c.stream), excludeCurrent: c.exclude,
				names: []string{"sum", "orders"}, inputs: []text{{"", "in.ndjson", lines}},
			}
			for _, m.asServed = range []bool{false, true} {
				for _, later := range []string{"1700000001000", "1700000000000"} { // or in the same millisecond
					m.inputs[0].content = strings.ReplaceAll(lines, "1700000001000", later)
					if got, _, err := m.run(t); err != nil || got != c.want {
						t.Errorf("%+v, named %v, as served %v, the second at %s: error %v, got\n%s", c, names, m.asServed, later, err, got)
					}
				}
			}
		}
	}
}
