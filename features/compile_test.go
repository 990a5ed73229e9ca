package features_test

import (
	orders "cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

func TestFeaturesShareSeries(t *testing.T) {
	for _, test := range []struct {
		name, a, b string
		shared     bool
	}{
		{"windows in the same tiles", "COUNT(7d, tx, user)", "COUNT(30d, tx, user)", true},
		{"windows in other tiles", "COUNT(7d, tx, user)", "COUNT(1d, tx, user)", false},
		{"a chosen tile", "COUNT(7d, tx, user, tile=1h)", "COUNT(1d, tx, user)", true},
		{"another parent", "COUNT(7d, tx, user, device)", "COUNT(7d, tx, device, user)", false},
		{"the order of by behind the parent", "COUNT(7d, tx, user, device, ip)", "COUNT(7d, tx, user, ip, device)", true},
		{"other entities", "COUNT(7d, tx, user)", "COUNT(7d, tx, device)", false},
		{"other streams", "COUNT(7d, tx, user)", "COUNT(7d, login, user)", false},
		{"other measures", "MIN(7d, tx, amount, user)", "MAX(7d, tx, amount, user)", false},
		{"windows in the same tiles", "COUNT(1d, tx, user)", "COUNT(calendar day tz Europe/Berlin, tx, user)", true},
		{"windows of the log", "COUNT(session 30m, tx, user, where='ok')", "LAST(last 10, tx, device, user)", true},
		{"other fields", "SUM(7d, tx, amount, user)", "SUM(7d, tx, fee, user)", false},
		{"spellings of a filter", "COUNT(7d, tx, user, where='ok == true')", "COUNT(7d, tx, user, where='(ok)==true')", true},
		{"a filter", "COUNT(7d, tx, user)", "COUNT(7d, tx, user, where='ok')", false},
		{"a sum and its average", "SUM(7d, tx, amount, user)", "AVG(7d, tx, amount, user)", false},
		{"an average over a required field and a count", "AVG(7d, tx, fee, user)", "COUNT(7d, tx, user)", false},
		{"averages of a field", "AVG(7d, tx, amount, user)", "AVG(30d, tx, amount, user)", true},
		{"an average over a field with nulls and a count", "AVG(7d, tx, amount, user)", "COUNT(7d, tx, user)", false},
		{"a lifetime", "COUNT(lifetime, tx, user)", "COUNT(7d, tx, user)", false},
		{"exact windows", "COUNT_DISTINCT(7d, tx, user, device, method=last_seen)", "COUNT_DISTINCT(1h, tx, user, device, method=last_seen)", true},
		{"rates of false positives", "SEEN(7d, tx, user, device)", "SEEN(30d, tx, user, device, fp=0.001, max=7)", true},
		{"filters and sets", "SEEN(7d, tx, user, device)", "COUNT_DISTINCT(7d, tx, user, device)", false},
		{"methods", "COUNT_DISTINCT(7d, tx, user, device, method=last_seen)", "COUNT_DISTINCT(7d, tx, user, device)", false},
		{"two names of an estimate", "COUNT_DISTINCT(7d, tx, user, device, method=hll)", "APPROX_COUNT_DISTINCT(7d, tx, user, device)", true},
		{"a set and its size", "SET(7d, tx, user, device)", "COUNT_DISTINCT(7d, tx, user, device)", true},
		{"a variance and a deviation", "VARIANCE(7d, tx, amount, user)", "STDDEV_POP(7d, tx, amount, user)", true},
		{"a ratio and a count", "RATIO(7d, tx, user, condition='ok')", "COUNT(7d, tx, user)", false},
		{"ratios of a condition", "RATIO(7d, tx, user, condition='ok')", "RATIO(30d, tx, user, condition='ok')", true},
		{"ratios of other conditions", "RATIO(7d, tx, user, condition='ok')", "RATIO(7d, tx, user, condition='!ok')", false},
		{"hours of activity and an hourly count", "ACTIVE(1d, tx, user, unit=1h)", "COUNT(1d, tx, user)", true},
		{"the latest event", "TIME_SINCE_LAST(7d, tx, user)", "IDLE_SINCE(7d, tx, user)", true},
		{"what is most frequent and how evenly", "MODE(7d, tx, device, user)", "ENTROPY(7d, tx, device, user)", true},
		{"a count per category and the most frequent ones", "COUNT(7d, tx, user, per=device, max=1000)", "TOP_K(7d, tx, device, user, k=3)", true},
		{"categories and none", "COUNT(7d, tx, user, per=device)", "COUNT(7d, tx, user)", false},
		{"other categories", "COUNT(7d, tx, user, per=device)", "COUNT(7d, tx, user, per=ip)", false},
		{"another number of categories", "COUNT(7d, tx, user, per=device)", "COUNT(7d, tx, user, per=device, max=99)", true},
		{"quantiles", "QUANTILE(7d, tx, amount, user, p=0.5)", "QUANTILE(7d, tx, amount, user, p=0.9)", true},
		{"quantiles of another error", "QUANTILE(7d, tx, amount, user, p=0.5)", "QUANTILE(7d, tx, amount, user, p=0.5, error=0.02)", false},
		{"other ranges", "HISTOGRAM(7d, tx, amount, user, bins=[1])", "HISTOGRAM(7d, tx, amount, user, bins=[2])", false},
	} {
		r := defined.Features(t, "a: "+test.a, "b: "+test.b)
		a, b := defined.Feature(t, r, "a"), defined.Feature(t, r, "b")
		shared := slices.ContainsFunc(a.Series, func(s *state.Series) bool { return slices.Contains(b.Series, s) })
		if shared != test.shared {
			t.Errorf("%s: %s and %s: shared is %t, want the opposite", test.name, test.a, test.b, shared)
		}
	}
}

func TestSharedSeriesKeepsForTheLongestWindow(t *testing.T) {
	r := defined.Features(t,
		"a: COUNT(30d, tx, user)", "b: COUNT(7d, tx, user, keep=25d)", "c: COUNT(2d, tx, user)",
		"few: COUNT_DISTINCT(7d, tx, user, device, method=last_seen, max=10)",
		"many: COUNT_DISTINCT(1d, tx, user, device, method=last_seen, max=20, keep=1d)",
		"alone: COUNT_DISTINCT(1d, login, user, device, method=last_seen)",
		"ever: COUNT_DISTINCT(lifetime, login, user, device, method=last_seen)",
		"later: COUNT_DISTINCT(7d, login, user, device, method=last_seen)")
	a, few, ever := defined.Feature(t, r, "a").Series[0], defined.Feature(t, r, "few").Series[0], defined.Feature(t, r, "ever").Series[0]
	if want := (32 * window.Day).Milliseconds(); a.Keep != want {
		t.Errorf("the count keeps %d ms, want %d", a.Keep, want)
	}
	if want := (7*window.Day + time.Hour).Milliseconds(); few.Keep != want || few.Max != 20 || few.Tile != 1 {
		t.Errorf("the values: %+v, want them kept for %d ms, 20 at the most, tile 1", few, want)
	}
	if ever.Keep != 0 || ever.Tile != 1 || ever != defined.Feature(t, r, "alone").Series[0] || ever != defined.Feature(t, r, "later").Series[0] {
		t.Errorf("the lifetime's values: %+v, want them kept forever and shared", ever)
	}
}

// Series that grow share the bytes of their key, whatever their function. Those with a greater max than the default have
// more, and so has the key.
func TestBytesOfSeries(t *testing.T) {
	const pool, key = 256 << 10, 500 << 10
	for _, test := range []struct {
		features []string
		bytes    int
		key      int
	}{
		{[]string{"COUNT_DISTINCT(7d, tx, user, device)"}, pool, key},
		{[]string{"COUNT_DISTINCT(7d, tx, user, device, max=3000)"}, 3 * pool, key + 2*pool},
		{[]string{"TOP_K(7d, tx, device, user, k=3)"}, pool, key},
		{[]string{"MODE(7d, tx, device, user)", "ENTROPY(30d, tx, device, user)"}, pool, key},
		{[]string{"MODE(7d, tx, device, user, max=2500)"}, 3 * pool, key + 2*pool},
		{[]string{"COUNT(7d, tx, user, per=device)"}, pool, key},
		{[]string{"COUNT(7d, tx, user, per=device, max=1000)"}, 10 * pool, key + 9*pool},
		{[]string{"TOP_K(7d, tx, device, user, k=3)", "COUNT(7d, tx, user, per=device, max=1000)"}, 10 * pool, key + 9*pool},
		{[]string{"COUNT(7d, tx, user, per=device, max=1000)", "TOP_K(7d, tx, device, user, k=3)"}, 10 * pool, key + 9*pool},
		{[]string{"COUNT_DISTINCT(7d, tx, user, ip, per=device)"}, pool, key},
		{[]string{"HISTOGRAM(7d, tx, amount, user, bins=[10])"}, pool, key},
		{[]string{"QUANTILE(7d, tx, amount, user, p=0.5)"}, pool, key},
		{[]string{"SEEN(7d, tx, user, device)"}, pool, key},
		{[]string{"SUM(7d, tx, amount, user, per=device, tile=exact)"}, pool, key},
		{[]string{"SUM(7d, tx, amount, user, tile=exact, max=2000)", "LAST_K(7d, tx, device, user, k=3)"}, 2 * pool, key + pool},
	} {
		var definitions []string
		for i, f := range test.features {
			definitions = append(definitions, fmt.Sprintf("f%d: %s", i, f))
		}
		r := defined.Features(t, definitions...)
		if s := r.Series[0]; len(r.Series) != 1 || s.Bytes != test.bytes || s.KeyBytes != test.key {
			t.Errorf("%s: %d series, the first of %d bytes in a key of %d; want 1, %d and %d", test.features, len(r.Series), s.Bytes, s.KeyBytes, test.bytes, test.key)
		}
	}
}

// The tiles of a window share its rate of false positives. A series has the lowest rate of its features.
func TestFilterRatePerTile(t *testing.T) {
	for _, test := range []struct {
		features []string
		rate     float64
		max      int
	}{
		{[]string{"SEEN(lifetime, tx, user, device)"}, 0.01, 1000},
		{[]string{"SEEN(10d, tx, user, device, max=50)"}, 0.001, 50},
		{[]string{"SEEN(10d, tx, user, device)", "SEEN(20d, tx, user, device, delay=1d, max=5000)", "SEEN(2d, tx, user, device, fp=0.1)"}, 0.0005, 5000},
		{[]string{"SEEN(calendar month tz UTC, tx, user, device, fp=0.31)"}, 0.01, 1000},
		{[]string{"SEEN(tumbling 1h, tx, user, device, fp=0.12, tile=5m)"}, 0.01, 1000},
		{[]string{"SEEN(10d, tx, user, device)", "SEEN(5d, tx, user, device, fp=0.0001)"}, 0.00002, 1000},
	} {
		var definitions []string
		for i, f := range test.features {
			definitions = append(definitions, fmt.Sprintf("f%d: %s", i, f))
		}
		r := defined.Features(t, definitions...)
		if s := r.Series[0]; len(r.Series) != 1 || s.Rate != test.rate || s.Max != test.max {
			t.Errorf("%s: %d series, the rate %v, max %d; want 1, %v and %d", test.features, len(r.Series), s.Rate, s.Max, test.rate, test.max)
		}
	}
}

// All state of an entity is in one group, which lives forever if any of its series does.
func TestGroups(t *testing.T) {
	r := defined.Features(t,
		"a: COUNT(30d, tx, user)", "b: SUM(1h, tx, amount, user)", "c: COUNT(7d, login, user)",
		"d: COUNT(7d, tx, device)", "e: COUNT(lifetime, tx, user)", "f: MAX(lifetime, tx, amount, user)",
		"g: COUNT_DISTINCT(90d, tx, device, user)")
	series := func(name string) *state.Series { return defined.Feature(t, r, name).Series[0] }
	device := (91*window.Day + time.Hour).Milliseconds()
	for name, want := range map[string]int64{"a": 0, "b": 0, "c": 0, "d": device, "g": device, "e": 0, "f": 0} {
		if s := series(name); s.GroupKeep != want {
			t.Errorf("%s: the group keeps %d, want %d", name, s.GroupKeep, want)
		}
	}
	groups := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		groups[name] = series(name).Group
	}
	if groups["a"] != groups["b"] || groups["a"] != groups["c"] || groups["a"] != groups["e"] || groups["e"] != groups["f"] ||
		groups["d"] != groups["g"] || groups["a"] == groups["d"] {
		t.Errorf("unexpected groups %v", groups)
	}
}

// The IDs of series are in the keys of every existing store. If this test fails, a release would lose state.
func TestSeriesIDsAreFixed(t *testing.T) {
	r := defined.Features(t, "f: SUM(7d, tx, amount, user, ip_c, where='ok == true')")
	s := r.Series[0]
	want := `series 1
stream tx
where "ok == true"
by user,ip_c
measure sum
field amount
type decimal 2
tile 86400000
derived ip_c "cidr(ip, 24)"
`
	if got := features.SeriesIdentity(s, r.Streams[1], fmt.Sprint(s.Tile)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := features.GroupIdentity(s.By, r.Streams[1]), "group 2\nby user string\nby ip_c string\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if s.ID != "Hh_tJ" || s.Group != "jdqb" {
		t.Errorf("the ID is %s and the group %s, want Hh_tJ and jdqb", s.ID, s.Group)
	}
}

func TestChangedDerivedFieldHasFreshState(t *testing.T) {
	id := func(streams, def string) string {
		r := defined.Registry(t, streams+"  f: "+def+"\n")
		return r.Series[0].ID
	}
	wider := strings.ReplaceAll(defined.Streams, "cidr(ip, 24)", "cidr(ip, 20)")
	for definition, changed := range map[string]bool{
		"COUNT(7d, tx, ip_c)":                           true,
		"COUNT(7d, tx, ip_b)":                           true, // made from ip_c
		"COUNT_DISTINCT(7d, tx, user, ip_c)":            true,
		"COUNT(7d, tx, user, where='ip_b != \"\"')":     true,
		"COUNT(7d, tx, ip)":                             false,
		"COUNT_DISTINCT(7d, tx, user, device, keep=2d)": false,
	} {
		if got := id(defined.Streams, definition) != id(wider, definition); got != changed {
			t.Errorf("%s: changed is %t, want %t", definition, got, changed)
		}
	}
}

func TestStreamWrites(t *testing.T) {
	r := defined.Features(t,
		"a: COUNT(7d, tx, user)", "b: COUNT(30d, tx, user)", "c: AVG(7d, tx, amount, user, where='ok')",
		"d: COUNT(7d, tx, user, device, where='ok')", "e: COUNT(1d, tx, user, device, where='(ok)')")
	tx, _ := r.Stream("tx")
	var got []string
	filters := map[*expr.Expr]bool{}
	for _, w := range r.Writes(tx) {
		line := fmt.Sprint(w.By, " ", w.Series.Measure, " field ", w.Field, " tile ", w.Series.Tile)
		if w.Where != nil {
			filters[w.Where] = true
			line += " where " + w.Where.Text
		}
		got = append(got, line)
	}
	if !slices.IsSortedFunc(r.Writes(tx), func(a, b features.Write) int {
		return orders.Or(slices.Compare(a.By, b.By), strings.Compare(a.Series.ID, b.Series.ID))
	}) {
		t.Error("the series of an entity are not sorted")
	}
	slices.Sort(got)
	want := []string{
		"[0 1] count field -1 tile 3600000 where ok",
		"[0 1] count field -1 tile 86400000 where ok",
		"[0] count field -1 tile 86400000",
		"[0] count_values field 5 tile 86400000 where ok",
		"[0] sum field 5 tile 86400000 where ok",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(filters) != 1 {
		t.Errorf("%d filters are evaluated, want 1", len(filters))
	}
	if login, _ := r.Stream("login"); r.Writes(login) != nil {
		t.Errorf("login writes %v, want nothing", r.Writes(login))
	}
}

func TestRegistryDoesNotDependOnOrder(t *testing.T) {
	definitions := []string{"b: COUNT(7d, tx, user)", "a: AVG(7d, tx, amount, user)", "c: COUNT(1d, login, device)"}
	first := defined.Features(t, definitions...)
	slices.Reverse(definitions)
	second := defined.Features(t, definitions...)
	names := func(r *features.Registry) (names []string) {
		for _, s := range r.Streams {
			names = append(names, s.Name)
		}
		for _, f := range r.Features {
			names = append(names, f.Name)
		}
		for _, s := range r.Series {
			names = append(names, s.ID)
		}
		return names
	}
	if diff := cmp.Diff(names(first), names(second)); diff != "" {
		t.Error(diff)
	}
	if got := names(first)[:5]; !slices.Equal(got, []string{"login", "tx", "a", "b", "c"}) {
		t.Errorf("names %v, want login, tx, a, b and c first", got)
	}
}

// Series that events change alike are written one after the other, so that they can share a packed body.
func TestSeriesThatChangeAlikeAreNeighbours(t *testing.T) {
	r := defined.Registry(t, `
streams:
  tx: {topic: tx, timestamp: ts, fields: {user: string, amount: int, fee: int, status: string}}
features:
  amount: SUM(1d, tx, amount, user)
  fee: SUM(1d, tx, fee, user)
  count: COUNT(1d, tx, user)
  approved: SUM(1d, tx, amount, user, where='status == "approved"')
  month: SUM(30d, tx, amount, user)
  paid: COUNT(1d, tx, user, where='fee > 0')
  greatest: MAX(30d, tx, amount, user)
`)
	var got []string
	for _, w := range r.Writes(r.Streams[0]) {
		got = append(got, fmt.Sprintf("%dh %s", w.Series.Tile/3_600_000, w.Series.Field))
	}
	want := []string{"1h ", "1h ", "1h amount", "1h amount", "1h fee", "24h amount", "24h amount"}
	if !slices.Equal(got, want) {
		t.Errorf("series are written in the order %q, want %q", got, want)
	}
}

// The log of an entity keeps as many events by default as a function may ask for.
func TestLogsHoldTheGreatestNumbers(t *testing.T) {
	var events []aggregate.Sample
	for i := range int64(features.DefaultLogMax) {
		events = append(events, aggregate.Sample{Time: i, Value: value.Value{Type: value.Int, Num: i}})
	}
	for _, function := range aggregate.All {
		spec := function.Spec()
		if _, tiled := function.(aggregate.Mergeable); tiled || len(spec.Parameters) == 0 || spec.Parameters[0].Type != aggregate.Whole {
			continue
		}
		most := spec.Parameters[0].Max
		r := function.Fold(aggregate.Call{Type: value.Int, N: most}, features.DefaultLogMax, events)
		if r.IsNull() || r.Items != nil && len(r.Items) < most {
			t.Errorf("%s of %d has no value, or only %d, in a log of %d events", spec.Name, most, len(r.Items), len(events))
		}
	}
}
