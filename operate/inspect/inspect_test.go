package inspect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	redisstore "github.com/weir-stream/weir/store/redis"
	"github.com/weir-stream/weir/store/storetest/plain"
	"github.com/weir-stream/weir/value"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const streams = `
streams:
  pay:
    topic: payments
    format: json
    timestamp: {path: at, unit: ms}
    fields:
      user: string
      shop: int
      amount: {type: decimal, scale: 2}
      ok: bool
features:
`

const definitions = streams + `
  spent_1d:   SUM(1d, pay, amount, user)
  spent_2h:   SUM(2h, pay, amount, user, tile=1h)
  pays_ever:  COUNT(lifetime, pay, user)
  shops_2d:   COUNT_DISTINCT(2d, pay, user, shop)
  last_shops: COUNT_DISTINCT(2d, pay, user, shop, method=last_seen, max=2)
  about_2d:   APPROX_COUNT_DISTINCT(2d, pay, user, shop)
  exact_1h:   SUM(1h, pay, amount, user, tile=exact, where='ok', max=2)
  shop_pays:  COUNT(1d, pay, shop)
  pair_pays:  COUNT(1d, pay, shop, user)
  spent_share: {expr: spent_2h / spent_1d}
`

func registry(t *testing.T, text string) *features.Registry {
	t.Helper()
	path := filepath.Join(t.TempDir(), "features.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := definition.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// noon is 2025-01-01T12:00:00Z, far from any expiry.
var noon = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC).UnixMilli()

// fill applies events one by one.
func fill(t *testing.T, s store.Store, r *features.Registry, events ...string) {
	t.Helper()
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := state.Partition{Topic: "payments", ID: 1}
	if _, err := s.Place(t.Context(), testkit.FirstPlacement(p, s.Shards(), 0)); err != nil {
		t.Fatal(err)
	}
	w, mapper := s.NewWriter(), r.NewMapper()
	progress, err := s.Progress(t.Context(), []state.Partition{p})
	if err != nil {
		t.Fatal(err)
	}
	for i, event := range events {
		b := &state.Batch{EveryShard: true, Series: r.Series}
		b.Ranges = []state.PartitionRange{{Partition: p, To: int64(i + 1), Progress: progress[0]}}
		_, err := mapper.Map(&record.Record{Partition: p, Offset: int64(i), Timestamp: noon, Value: []byte(event)}, 0, b)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

var events = []string{
	`{"user": "u1", "shop": 7, "amount": 1.50, "ok": true, "at": 1735729200000}`,  // 11:00
	`{"user": "u1", "shop": 8, "amount": 2, "ok": false, "at": 1735732800000}`,    // 12:00
	`{"user": "u1", "shop": 7, "amount": 10.25, "ok": true, "at": 1735732800001}`, // by a clock that is a millisecond ahead
	`{"user": "u1", "shop": 9, "amount": 0.01, "ok": true, "at": 1735732800002}`,  // and another one
	`{"user": "u2", "shop": 7, "amount": 3, "ok": true, "at": 1735732800000}`,
}

func TestReadAsText(t *testing.T) {
	t.Run("redis", func(t *testing.T) {
		s := redisstore.New(redistest.Shared(t).Client(t), testkit.Namespace(t), 2)
		readAsText(t, s, s, "{", ", forever")
	})
	t.Run("values", func(t *testing.T) {
		s := plain.New(2)
		readAsText(t, s, s, "", "")
		r := registry(t, definitions)
		s.Spoil(r.Features[0].Series[0], "u1")
		keys, err := Read(t.Context(), s, r, map[string]string{"user": "u1"}, nil)
		var out strings.Builder
		if err == nil {
			keys.WriteText(&out)
		}
		if want := "  damaged   it is a value, which Weir has not written\n"; err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("of a foreign value: got\n%s, error %v; want the end\n%s", &out, err, want)
		}
	})
}

// State that a longer window has superseded is of no feature.
func TestSeriesOfNoFeature(t *testing.T) {
	var out strings.Builder
	Keys{{By: []string{"user"}, Entity: map[string]string{"user": "u1"}, Bytes: 9, Series: []Series{{}}}}.WriteText(&out)
	if want := "\n  for no feature any more\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got\n%s\nwant the end %s", &out, want)
	}
}

func readAsText(t *testing.T, s store.Store, inspected Store, key, lives string) {
	r := registry(t, definitions)
	fill(t, s, r, events...)
	keys, err := Read(t.Context(), inspected, r, map[string]string{"user": "u1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	Keys(keys).WriteText(&out)
	for _, want := range []string{
		"user=u1\n  key       " + key, ", payments/1 at 5, newest record of 2025-01-01T12:00:00Z\n", " bytes" + lives + "\n",
		": sum of amount in pay\n  as tiles, tile 1h, kept 25h: ",
		"\n  for spent_1d, spent_2h, spent_share\n    2025-01-01T11:00:00Z  1.5\n    2025-01-01T12:00:00Z  12.26\n",
		"\n  for pays_ever\n    4\n",
		"\n  for shops_2d\n    7  2025-01-01T00:00:00Z\n    8  2025-01-01T00:00:00Z\n    9  2025-01-01T00:00:00Z\n",
		"\n  for last_shops\n    8  2025-01-01T12:00:00Z\n    9  2025-01-01T12:00:00Z\n",
		"\n  for about_2d\n    2025-01-01T00:00:00Z  about 3 values  3 registers set\n",
		"\n  for exact_1h\n    events up to 2025-01-01T11:00:00Z were cut off by max 2\n" +
			"    2025-01-01T12:00:00Z  amount: 10.25, ok: true\n    2025-01-01T12:00:00Z  amount: 0.01, ok: true\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks\n%s", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// Checks the complete text and JSON output on fixed data.
func TestWrite(t *testing.T) {
	seconds, cut, value, member, estimate := int64(90061), noon, "1.5", "a\nb", int64(12)
	keys := []Key{
		{
			Entity: map[string]string{"user": "u1", "shop": "7"}, By: []string{"shop", "user"}, Shard: 3, Key: "{weir:3}abcde:7|u1",
			Bytes: 120, TimeToLive: &seconds, Progress: []Progress{{"tx", 0, 5}, {"tx", 1, 6}}, Newest: noon + 1,
			Series: []Series{{
				Series: cost.Series{
					ID: "fghij", Measure: "sum", Field: "amount", Per: "card", Stream: "pay", Where: "ok", Condition: "large", State: "tiles", Tile: "1d", Keep: "8d",
					Max: 5, Features: []string{"one", "two"},
				},
				Sections: 2, Bytes: 100, CutOff: &cut,
				Entries: []Entry{
					{Times: []int64{noon}, Value: &value},
					{Member: &member, Times: []int64{noon, noon, noon, noon, noon, noon, noon}},
					{Times: []int64{noon}, Estimate: &estimate, Registers: 11},
					{Key: &value, Times: []int64{noon}, Moments: &Moments{Number: 2, Mean: 1.5, Squares: 0.5}},
					{Times: []int64{noon}, Columns: map[string]string{"b": "", "a": "x"}},
				},
			}},
			Children: []Children{{By: []string{"shop", "user", "card"}, Sections: 2, Bytes: 30}},
			Unknown:  []Unknown{{"00ff00", 1, 20}},
		},
		{Entity: map[string]string{"user": "u1"}, By: []string{"user"}, Key: "{weir:0}klmno:u1", Progress: []Progress{}, Series: []Series{}},
	}
	want := strings.Join([]string{
		`shop=7 user=u1`,
		`  key       {weir:3}abcde:7|u1`,
		`  shard     3, tx/0 at 5, tx/1 at 6, newest record of 2025-01-01T12:00:00.001Z`,
		`  holds     120 bytes, for 25h1m1s more`,
		``,
		`  series fghij: sum of amount per card in pay where ok if large`,
		`  as tiles, tile 1d, kept 8d: 100 bytes in 2 sections`,
		`  for one, two`,
		`    events up to 2025-01-01T12:00:00Z were cut off by max 5`,
		`    2025-01-01T12:00:00Z  1.5`,
		`    "a\nb"                2025-01-01T12:00:00Z 2025-01-01T12:00:00Z 2025-01-01T12:00:00Z 2025-01-01T12:00:00Z 2025-01-01T12:00:00Z and 2 more`,
		`    2025-01-01T12:00:00Z  about 12 values       11 registers set`,
		`    1.5                   2025-01-01T12:00:00Z  2 values  mean 1.5  squares 0.5`,
		`    2025-01-01T12:00:00Z  a: x, b: ""`,
		``,
		`  state by shop, user, card, which this key holds: 30 bytes in 2 sections`,
		``,
		`  series with tag 00ff00, which these definitions do not have: 20 bytes in 1 section`,
		``,
		`user=u1`,
		`  key       {weir:0}klmno:u1`,
		`  shard     0`,
		`  holds     nothing`,
		``,
	}, "\n")
	var out strings.Builder
	Keys(keys).WriteText(&out)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(Keys(keys[1:])); err != nil {
		t.Fatal(err)
	}
	want = `{
  "keys": [
    {
      "entity": {
        "user": "u1"
      },
      "by": [
        "user"
      ],
      "shard": 0,
      "key": "{weir:0}klmno:u1",
      "bytes": 0,
      "progress": [],
      "newest": 0,
      "series": []
    }
  ]
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadOfSome(t *testing.T) {
	client, namespace := redistest.Shared(t).Client(t), testkit.Namespace(t)
	s := redisstore.New(client, namespace, 2)
	r := registry(t, definitions)
	fill(t, s, r, events...)
	read := func(given map[string]string, names ...string) []Key {
		t.Helper()
		keys, err := Read(t.Context(), s, r, given, names)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	// A derived feature includes everything that its parts need.
	if keys := read(map[string]string{"user": "u1"}, "spent_share"); len(keys) != 1 || len(keys[0].Series) != 1 ||
		!slices.Equal(keys[0].Series[0].Features, []string{"spent_1d", "spent_2h", "spent_share"}) || len(keys[0].Unknown) != 0 {
		t.Errorf("unexpected keys for spent_share: %+v", keys)
	}
	// Two keys make three kinds of entities.
	if keys := read(map[string]string{"user": "u1", "shop": "7"}); len(keys) != 3 || keys[0].Bytes == 0 || keys[1].Bytes == 0 ||
		*keys[0].Series[0].Entries[1].Value != "2" || keys[0].TimeToLive == nil || *keys[0].TimeToLive < 25*3600 {
		t.Errorf("unexpected keys for both features: %+v", keys)
	}
	// A shop's key holds the state of its pairs with users.
	if keys := read(map[string]string{"shop": "7"}); len(keys) != 1 || len(keys[0].Unknown) != 0 || len(keys[0].Children) != 1 ||
		!slices.Equal(keys[0].Children[0].By, []string{"shop", "user"}) || keys[0].Children[0].Sections == 0 || keys[0].Children[0].Bytes == 0 {
		t.Errorf("unexpected keys for a shop with children: %+v", keys)
	}
	if keys := read(map[string]string{"shop": "7"}, "shop_pays"); len(keys) != 1 || len(keys[0].Unknown)+len(keys[0].Children) != 0 {
		t.Errorf("unexpected keys for a feature of a shop with children: %+v", keys)
	}
	if keys := read(map[string]string{"user": "nobody"}, "spent_1d"); len(keys) != 1 || keys[0].Bytes != 0 || len(keys[0].Series) != 0 {
		t.Errorf("unexpected keys for an entity without state: %+v", keys)
	}
	// With fewer definitions, the other series are shown as unknown.
	fewer := registry(t, streams+"  spent_1d: SUM(1d, pay, amount, user)\n")
	keys, err := Read(t.Context(), s, fewer, map[string]string{"user": "u1"}, nil)
	if err != nil || len(keys) != 1 || len(keys[0].Series) != 1 || len(keys[0].Unknown) != 5 {
		t.Errorf("with fewer definitions: unexpected keys %+v, error %v", keys, err)
	}
}

// While some slices of a shard are ahead, the progress is that of the entity's own slice.
func TestReadOfSliceAhead(t *testing.T) {
	s := redisstore.New(redistest.Shared(t).Client(t), testkit.Namespace(t), 1)
	r := registry(t, definitions)
	fill(t, s, r, events...)
	slice := state.SliceOf(state.EntityHash([]byte("u1")))
	if slice == 0 {
		t.Fatal("the entity is in the first slice, and no fewer can be ahead")
	}
	from := []state.Position{{Offset: 5}}
	for _, c := range []struct{ slices, want int }{{slice, 5}, {slice + 1, 50}} {
		to := []state.Position{from[0].WithAhead(50, c.slices)}
		if n, err := s.Place(t.Context(), state.Placement{Partition: state.Partition{Topic: "payments", ID: 1}, From: from, To: to, Partitions: 2}); n != 1 || err != nil {
			t.Fatalf("placed %d, error %v; want 1", n, err)
		}
		from = to
		keys, err := Read(t.Context(), s, r, map[string]string{"user": "u1"}, []string{"spent_1d"})
		if err != nil {
			t.Fatal(err)
		}
		if want := []Progress{{"payments", 1, int64(c.want)}}; !slices.Equal(keys[0].Progress, want) {
			t.Errorf("with %d slices ahead, slice %d has the progress %+v, want %+v", c.slices, slice, keys[0].Progress, want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	s := redisstore.New(redistest.Shared(t).Client(t), testkit.Namespace(t), 2)
	r := registry(t, definitions)
	for _, c := range []struct {
		given map[string]string
		names []string
		want  string
	}{
		{map[string]string{"usr": "u1"}, nil, "no state is kept by usr with the keys given; it is kept by shop; shop,user; user"},
		{map[string]string{"shop": "x"}, nil, "shop=x is not a valid int"},
		{map[string]string{"user": "u1"}, []string{"spent_2d"}, `--feature: unknown feature "spent_2d"; did you mean "spent_1d"?`},
		{map[string]string{"user": "u1"}, []string{"pair_pays"}, "no state is kept by user with the keys given; it is kept by shop,user"},
	} {
		_, err := Read(t.Context(), s, r, c.given, c.names)
		if err == nil || err.Error() != c.want {
			t.Errorf("\ngot  %v\nwant %s", err, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		field record.Field
		text  string
		want  string // empty if invalid
	}{
		{record.Field{Type: value.String}, `a|b\`, `a\|b\\`},
		{record.Field{Type: value.Int}, "007", "7"},
		{record.Field{Type: value.Int}, "7.5", ""},
		{record.Field{Type: value.Bool}, "true", "true"},
		{record.Field{Type: value.Bool}, "yes", ""},
		{record.Field{Type: value.Decimal, Scale: 2}, "1.50", "1.5"},
		{record.Field{Type: value.Decimal, Scale: 2}, "-3", "-3"},
		{record.Field{Type: value.Decimal, Scale: 2}, "1.505", ""},
		{record.Field{Type: value.Decimal, Scale: 2}, "99999999999999999999", ""},
		{record.Field{Type: value.Decimal, Scale: 2}, "x", ""},
		{record.Field{Type: value.Timestamp}, "2025-01-01T12:00:00Z", "1735732800000"},
		{record.Field{Type: value.Timestamp}, "1735732800000", "1735732800000"},
		{record.Field{Type: value.Timestamp}, "noon", ""},
		{record.Field{Type: value.Float}, "1", ""},
	} {
		v, ok := parse(c.field, c.text)
		got := ""
		if ok {
			got = string(state.AppendEntity(nil, true, v))
		}
		if got != c.want {
			t.Errorf("%s of type %s is %q, want %q", c.text, c.field.Type, got, c.want)
		}
	}
}
