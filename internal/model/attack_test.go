package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/value"
)

// Whoever writes events can fill every bound of an entity's state. These tests do, one for each row of the table in
// docs/guarantees.md: what is answered then says that something is left out, and no other entity notices.

const attacked = `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {user: string, device: string, x: float, note: {type: string, max_bytes: 65536}, shop: string, n: int}
features:
`

// dayAgo is a time of an event, in ms before the moment that answers are about.
const dayAgo = 86_400_000

func (r *replay) pay(ago int64, fields string) {
	r.event(`{"t":%d,%s}`, recorded*1000-ago, fields)
}

// stated checks that an answer says that a bound has left something out, by a null, `capped` or an error.
func stated(t *testing.T, name string, a query.Answer) {
	t.Helper()
	if a.Exact || a.Status == query.NotFound || !a.Capped && a.StandardError == 0 {
		t.Errorf("%s of what exceeds a bound: %v %s with %d items, exact %t, capped %t, error %v", name, a.Value, a.Status, len(a.Items), a.Exact, a.Capped, a.StandardError)
	}
}

// whole checks that an answer claims to lack nothing.
func whole(t *testing.T, name string, a query.Answer) {
	t.Helper()
	if !a.Exact || a.Capped {
		t.Errorf("%s of what is within all bounds: %v %s, exact %t, capped %t", name, a.Value, a.Status, a.Exact, a.Capped)
	}
}

// A few events with long texts fill the bytes of a log.
func TestLogFilledByLongTexts(t *testing.T) {
	r := newReplay(t, attacked+`
  spent: SUM(1h, pay, n, user, tile=exact)
  large: COUNT(1h, pay, user, where='n > 1000', tile=exact)
  notes: LAST_K(1h, pay, note, user, k=3)
`)
	for _, user := range []string{"u", "v"} {
		for i := range int64(3) {
			r.pay(1000+i, fmt.Sprintf(`"user":%q,"n":50000`, user))
		}
	}
	for i := range 20 {
		r.pay(int64(i), fmt.Sprintf(`"user":"u","n":0,"note":"%060000d"`, i))
	}
	stated(t, "spent", r.answer("spent", "u"))
	checkWithheld(t, "large", r.answer("large", "u"))
	if a := r.answer("notes", "u"); len(a.Items) != 3 || !a.Exact {
		t.Errorf("%d of the last notes are known, exact %t; want 3, exact", len(a.Items), a.Exact)
	}
	if a := r.answer("spent", "v"); a.Value.Num != 150_000 || !a.Exact {
		t.Errorf("another user has spent %v, exact %t", a.Value, a.Exact)
	}
}

// Long values fill the bytes of sets before their max, beside other sets of the same key.
func TestSetsFilledByLongValues(t *testing.T) {
	definitions := attacked
	for i := range 10 {
		definitions += fmt.Sprintf("  count%d: COUNT_DISTINCT(30d, pay, user, device, where='n != %[1]d')\n  list%[1]d: SET(30d, pay, user, device, where='n != %[1]d')\n", i)
	}
	definitions += "  before: COUNT_DISTINCT(30d, pay, user, device, keep=0s, delay=1d)\n"
	r := newReplay(t, definitions)
	r.pay(3*dayAgo, `"user":"u","device":"mine","n":100`)
	const flood = 900
	device := func(i int) string { return fmt.Sprintf("%0250d", i) }
	for i := range flood {
		r.pay(0, fmt.Sprintf(`"user":"u","device":%q,"n":100`, device(i)))
	}
	for i := range 10 {
		count := r.answer(fmt.Sprint("count", i), "u")
		if off := float64(count.Value.Num)/(flood+1) - 1; count.Exact || count.StandardError == 0 || max(off, -off) > 5*count.StandardError {
			t.Errorf("%d of %d devices, exact %t, with an error of %v", count.Value.Num, flood+1, count.Exact, count.StandardError)
		}
		stated(t, "list", r.answer(fmt.Sprint("list", i), "u"))
	}
	if before := r.answer("before", "u"); before.Value.Num != 1 || !before.Exact {
		t.Errorf("before the flood %v devices are counted, exact %t; want 1, exact", before.Value, before.Exact)
	}
	f, _ := r.registry.Feature("list0")
	unknown := 0
	for i := range flood + 100 {
		a := r.answerOf(f.AskedAbout([]value.Value{{Type: value.String, Str: []byte(device(i))}}), "u")
		switch v := a.Items[0].Value; {
		case v.IsNull():
			unknown++
			stated(t, "a member", a)
		case (v.Num == 1) != (i < flood):
			t.Fatalf("device %d is said to be met: %v", i, v)
		}
	}
	if unknown < flood/2 {
		t.Errorf("%d members are unknown, want most", unknown)
	}
}

// Values that sort first displace all others from what is kept by keys; windows without them are whole.
func TestKeysDisplacedByOthers(t *testing.T) {
	features := map[string]string{
		"per": "SUM(30d, pay, n, user, per=shop", "top": "TOP_K(30d, pay, shop, user, k=3", "mode": "MODE(30d, pay, shop, user",
		"entropy": "ENTROPY(30d, pay, shop, user", "distinct": "COUNT_DISTINCT(30d, pay, user, device, per=shop",
	}
	for name, c := range map[string]struct {
		flood int
		shop  string
	}{"more than max": {1200, "!%d"}, "of more bytes than fit": {800, "!%0250d"}} {
		t.Run(name, func(t *testing.T) {
			definitions := attacked
			for name, text := range features {
				definitions += fmt.Sprintf("  %s: %s)\n  %[1]s_before: %[2]s, delay=1d)\n", name, text)
				for i := range 6 { // which share the bytes
					definitions += fmt.Sprintf("  %s_%d: %s, where='n != %d')\n", name, i, text, i)
				}
			}
			r := newReplay(t, definitions)
			for _, user := range []string{"u", "v"} {
				r.pay(3*dayAgo, fmt.Sprintf(`"user":%q,"device":"d","shop":"mine","n":5000`, user))
			}
			for i := range c.flood {
				r.pay(0, fmt.Sprintf(`"user":"u","device":"d","shop":%q,"n":100`, fmt.Sprintf(c.shop, i)))
			}
			for name := range features {
				a := r.answer(name, "u")
				stated(t, name, a)
				if a.Status != query.Present {
					t.Errorf("%s is %s", name, a.Status)
				}
				before := r.answer(name+"_before", "u")
				whole(t, name+"_before", before)
				if before.Status != query.Present {
					t.Errorf("%s before the flood is %s", name, before.Status)
				}
				whole(t, name+" of another user", r.answer(name, "v"))
			}
			if i := slices.IndexFunc(r.answer("per", "u").Items, func(i aggregate.Item) bool { return string(i.Category.Str) == "mine" }); i >= 0 {
				t.Error("the attacked shop is still in the answer, so nothing was displaced")
			}
		})
	}
}

// A list of many members hides some of them from a feature that goes through it.
func TestListsFilledWithMembers(t *testing.T) {
	r := newReplay(t, attacked+`
  through: SUM(30d, pay, n, SET(30d, pay, device, user))
  few:     SUM(30d, pay, n, SET(30d, pay, device, user), max=10)
  newest:  SUM(30d, pay, n, LAST_DISTINCT_K(30d, pay, user, device, k=50))
`)
	for _, device := range []string{"d", "e"} {
		r.pay(3*dayAgo, fmt.Sprintf(`"user":"victim","device":%q,"n":50000`, device))
	}
	for i := range 2000 {
		r.pay(0, fmt.Sprintf(`"user":"%04d","device":"d","n":0`, i)) // sorts before the victim
	}
	for _, name := range []string{"through", "few"} {
		stated(t, name, r.answer(name, "d"))
	}
	for _, name := range []string{"through", "few", "newest"} {
		whole(t, name, r.answer(name, "e"))
	}
	// A list of the newest has all that it says: it is defined so.
	if a := r.answer("newest", "d"); a.Value.Num != 0 || a.Capped {
		t.Errorf("the sum of the newest is %v, capped %t; want 0 of the users that it names", a.Value, a.Capped)
	}
}

// Newer values displace those that were seen before them.
func TestValuesLastSeenDisplaced(t *testing.T) {
	r := newReplay(t, attacked+"  month: COUNT_DISTINCT(30d, pay, user, device, method=last_seen)\n")
	r.pay(dayAgo, `"user":"u","device":"mine"`)
	for i := range 1500 {
		r.pay(int64(i), fmt.Sprintf(`"user":"u","device":"%d"`, i))
		if i == 500 {
			whole(t, "month", r.answer("month", "u"))
		}
	}
	stated(t, "month", r.answer("month", "u"))
	if a := r.answer("month", "u"); a.Value.Num != 1000 {
		t.Errorf("%v values are counted, want the 1000 that are kept", a.Value)
	}
}

// Texts that are longer than max_bytes stay distinct, also if they have equal beginnings. The shortened form of a text,
// sent as a value, is that text: who sends it must have known the text.
func TestLongValuesStayDistinct(t *testing.T) {
	r := newReplay(t, attacked+"  devices: COUNT_DISTINCT(1d, pay, user, device)\n  mine: COUNT(1d, pay, device)\n")
	long := func(i int) string { return strings.Repeat("x", 300) + fmt.Sprint(i) }
	for i := range 100 {
		r.pay(0, fmt.Sprintf(`"user":"u","device":%q`, long(i)))
	}
	short := string(value.Shorten(nil, []byte(long(0)), value.MaxText))
	r.pay(0, fmt.Sprintf(`"user":"u","device":%q`, short))
	if a := r.answer("devices", "u"); a.Value.Num != 100 || !a.Exact {
		t.Errorf("%v long values, exact %t; want 100, exact", a.Value, a.Exact)
	}
	if a := r.answer("mine", short); a.Value.Num != 2 {
		t.Errorf("the text and its shortened form have %v events, want 2", a.Value)
	}
}

// One amount near the limits of floats makes no variance, and no feature derived from one, look like that of ordinary
// amounts.
func TestAmountsBeyondFloats(t *testing.T) {
	definitions := attacked
	names := []string{"sum", "avg", "stddev", "variance", "stddev_pop", "var_pop", "exp_decay_sum", "diff"}
	for _, name := range names {
		for suffix, tile := range map[string]string{"": "", "_exact": ", tile=exact"} {
			more := tile
			switch name {
			case "diff":
				more = ""
			case "exp_decay_sum":
				more = ", half_life=1h"
			}
			definitions += fmt.Sprintf("  %s%s: %[1]s(1d, pay, x, user%[3]s)\n", name, suffix, more)
		}
	}
	r := newReplay(t, definitions+"  unusual: {expr: 'avg / stddev', default: 0}\n")
	r.pay(1000, `"user":"u","x":5`)
	r.pay(999, `"user":"u","x":7`)
	for _, name := range names {
		whole(t, name, r.answer(name, "u"))
	}
	r.pay(998, `"user":"u","x":-1.7e308`)
	r.pay(997, `"user":"u","x":-1.7e308`)
	r.pay(996, `"user":"u","x":1.7e308`)
	r.pay(995, `"user":"u","x":1.7e308`)
	r.pay(995, `"user":"u","x":1.7e308`)
	r.pay(995, `"user":"u","x":1.7e308`)
	r.pay(994, `"user":"u","x":-1.7e308`)
	for _, name := range names {
		for _, suffix := range []string{"", "_exact"} {
			a := r.answer(name+suffix, "u")
			if name == "exp_decay_sum" || suffix != "" && (name == "sum" || name == "avg") { // in a log the terms cancel out
				whole(t, name+suffix, a)
			} else {
				stated(t, name+suffix, a)
			}
		}
	}
	if a := r.answer("unusual", "u"); !a.Value.IsNull() || !a.Capped {
		t.Errorf("the derived feature is %v, capped %t; want no value", a.Value, a.Capped)
	}
}

// An event in every gap makes a session as long as its max_length.
func TestSessionsWithoutEnd(t *testing.T) {
	r := newReplay(t, attacked+"  visit: COUNT(session 20m max_length 1h, pay, user)\n")
	for _, user := range []string{"u", "v"} {
		r.pay(1000, fmt.Sprintf(`"user":%q`, user))
	}
	for i := range int64(10) {
		r.pay(i*600_000, `"user":"u"`)
	}
	stated(t, "visit", r.answer("visit", "u"))
	whole(t, "visit", r.answer("visit", "v"))
}

// Values of all magnitudes fill the buckets of a quantile.
func TestQuantileOfAllMagnitudes(t *testing.T) {
	definitions := attacked
	for i := range 30 { // which share the bytes
		definitions += fmt.Sprintf("  q%d: QUANTILE(30d, pay, x, user, p=0.5, error=0.001, where='n != %d')\n", i, i)
	}
	r := newReplay(t, definitions)
	for i := range 4000 {
		r.pay(0, fmt.Sprintf(`"user":"u","n":100,"x":%g`, math.Pow(10, float64(i%600)-300)*(1+float64(i)/4000)))
	}
	a := r.answer("q0", "u")
	if middle := a.Value.Float64(); !a.Capped && (middle < 0.1 || middle > 10*(1+1)) {
		t.Errorf("the median is %v, capped %t; want about 1, or that some values were left out", middle, a.Capped)
	}
	stated(t, "q0", a)
}
