package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/value"
)

// Sets of a hot entity are exact up to their max. Beyond it, answers report their precision: a
// number is an estimate within its error, a list is capped.
func TestSetsOfAHotEntity(t *testing.T) {
	definitions := `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {device: string, user: string, shop: string}
features:
  month:  COUNT_DISTINCT(30d, pay, device, user)
  ever:   COUNT_DISTINCT(lifetime, pay, device, user, max=200)
  list:   SET(30d, pay, device, user)
  some:   SET(lifetime, pay, device, user, max=3)
  shops:  COUNT_DISTINCT(30d, pay, device, user, per=shop)
  approx: APPROX_COUNT_DISTINCT(1h, pay, device, user)
`
	r := newReplay(t, definitions)
	random := rand.New(rand.NewPCG(9, 10))
	for n := 1; n <= 50_000; n++ {
		at := recorded*1000 - random.Int64N(29*86_400_000)
		r.event(`{"t":%d,"device":"d","shop":"s%d","user":"u%06d"}`, at, n%3, n)
		if n%10 == 0 {
			r.event(`{"t":%d,"device":"d","shop":"s%d","user":"u%06d"}`, recorded*1000, n%3, n) // again
		}
		switch n {
		case 3, 200, 1000, 20_000, 50_000:
			for _, name := range []string{"month", "ever"} {
				checkEstimate(t, name, r.answer(name, "d"), n)
			}
			checkList(t, "list", r.answer("list", "d"), n, 1000)
			checkList(t, "some", r.answer("some", "d"), n, 3)
		}
	}
	shops := r.answer("shops", "d")
	for _, item := range shops.Items {
		if off := math.Abs(float64(item.Value.Num)-50_000/3) / (50_000 / 3); off > 5*shops.StandardError || shops.Exact {
			t.Errorf("shop %s has %d users, %.3f off, with a stated error of %v", item.Category.Str, item.Value.Num, off, shops.StandardError)
		}
	}
}

func checkEstimate(t *testing.T, name string, a query.Answer, n int) {
	t.Helper()
	off := math.Abs(float64(a.Value.Num)-float64(n)) / float64(n)
	if n <= 200 && (!a.Exact || off > 0 || a.StandardError > 0) {
		t.Errorf("%s of %d is %d, exact %t, error %v", name, n, a.Value.Num, a.Exact, a.StandardError)
	}
	if n > 40_000 && (a.Exact || a.StandardError == 0) || off > 4*a.StandardError || a.StandardError > 0.08 || a.Capped {
		t.Errorf("%s of %d is %d, %.3f off, exact %t, error %v, capped %t", name, n, a.Value.Num, off, a.Exact, a.StandardError, a.Capped)
	}
}

func checkList(t *testing.T, name string, a query.Answer, n, most int) {
	t.Helper()
	if len(a.Items) != min(n, most) || a.Capped != (n > most) || a.Exact == a.Capped {
		t.Errorf("%s of %d values lists %d, capped %t, exact %t", name, n, len(a.Items), a.Capped, a.Exact)
	}
	if !slices.IsSortedFunc(a.Items, func(a, b aggregate.Item) int { return value.Compare(a.Value, b.Value) }) {
		t.Errorf("%s is not sorted", name)
	}
}

// A member that the sample of a set may have dropped is not reported as certainly absent.
func TestMembersOfACappedSet(t *testing.T) {
	r := newReplay(t, `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {device: string, user: string}
features:
  set: SET(30d, pay, device, user, max=100)
`)
	for n := range 1000 {
		r.event(`{"t":%d,"device":"d","user":"u%d"}`, recorded*1000, n)
	}
	r.flush()
	f, _ := r.registry.Feature("set")
	kept, sureAbsent, unsure := 0, 0, 0
	for n := range 2000 {
		asked := value.Value{Type: value.String, Str: fmt.Append(nil, "u", n)}
		a := r.answerOf(f.AskedAbout([]value.Value{asked}), "d")
		if unknown := a.Items[0].Value.IsNull(); unknown != !a.Exact {
			t.Fatalf("u%d is %v in an answer that is exact: %t", n, a.Items[0].Value, a.Exact)
		}
		switch found := a.Items[0].Value.Num == 1; {
		case found && n >= 1000:
			t.Fatalf("u%d is found, but never occurred", n)
		case found:
			kept++
		case a.Exact && n < 1000:
			t.Fatalf("u%d occurred, but the answer excludes it with certainty", n)
		case a.Exact:
			sureAbsent++
		default:
			unsure++
		}
	}
	if kept != 100 || sureAbsent < 50 || unsure < 900 {
		t.Errorf("%d are found, %d certainly absent and %d uncertain; want 100, at least 50 and at least 900", kept, sureAbsent, unsure)
	}
}

// Events that claim to be of the future hide none of the present: they count at once, like any others. If a cap has dropped
// all that a feature asks for, its answer does not say that nothing was there.
func TestEventsFromTheFutureHideNothing(t *testing.T) {
	r := newReplay(t, `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {user: string, amount: int}
features:
  count: COUNT(1h, pay, user, tile=exact, max=500)
  large: SUM(1h, pay, amount, user, tile=exact, max=500, where='amount > 0')
  mean:  AVG(1h, pay, amount, user, tile=exact, max=500, where='amount > 0')
`)
	now := int64(recorded * 1000)
	for range 3 {
		r.event(`{"t":%d,"user":"u","amount":50000}`, now-1000)
	}
	for range 400 {
		r.event(`{"t":%d,"user":"u","amount":0}`, now+290_000)
	}
	r.flush()
	if count, large := r.answer("count", "u"), r.answer("large", "u"); count.Value.Num != 403 || large.Value.Num != 150_000 || !large.Exact {
		t.Errorf("the count is %v, the sum %v, exact %t; want 403 and 150000, exact", count.Value.Num, large.Value.Num, large.Exact)
	}
	for range 200 {
		r.event(`{"t":%d,"user":"u","amount":0}`, now+290_000)
	}
	r.flush()
	if a := r.answer("count", "u"); a.Value.Num != 500 || a.Status != query.Present || !a.Capped || a.Exact {
		t.Errorf("the count after events were dropped is %v, %s, capped %t, exact %t; want 500, PRESENT, capped and not exact", a.Value.Num, a.Status, a.Capped, a.Exact)
	}
	for _, name := range []string{"large", "mean"} {
		checkWithheld(t, name, r.answer(name, "u"))
	}
}

// checkWithheld checks an answer for a window of which a bound has left nothing.
func checkWithheld(t *testing.T, name string, a query.Answer) {
	t.Helper()
	if !a.Value.IsNull() || a.Items != nil || a.Status != query.NullValue || !a.Capped || a.Exact {
		t.Errorf("%s of a window of which nothing is left: %v %v, %s, capped %t, exact %t; want no value, NULL_VALUE, capped and not exact",
			name, a.Value, a.Items, a.Status, a.Capped, a.Exact)
	}
}

// Whoever fills the log of an entity with other events, so that nothing of a window is left, gets no 0 from any function.
func TestNothingLeftOfAWindow(t *testing.T) {
	definitions := `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {user: string, shop: string, n: int, x: float, b: bool, at: location}
features:
`
	const others = `
  all:     COUNT(1h, pay, user, tile=exact)
  of:      {expr: f0 * 2, default: 0}
  both:    {expr: 'f0 > 0 ? "some" : "none"'}
  through: COUNT(1h, pay, SET(30d, pay, shop, user), where='b', tile=exact)
`
	given := map[string]string{"k": "3", "p": "0.3", "error": "0.02", "unit": "1h", "fp": "0.4", "current": "counted", "bins": "[-2, 1, 3]", "condition": "'n > 1'", "n": "1", "half_life": "1h"}
	names := map[string]bool{"of": true, "both": true, "through": true}
	for i, function := range aggregate.All {
		spec := function.Spec()
		if spec.Members == aggregate.MembersRequired {
			continue
		}
		field := ""
		switch {
		case slices.Contains(spec.Types, value.Int):
			field = "n, "
		case slices.Contains(spec.Types, value.Location):
			field = "at, "
		case slices.Contains(spec.Types, value.Bool):
			field = "b, "
		case spec.Types != nil:
			field = "x, "
		}
		arguments := field + "user"
		if spec.FieldLast {
			arguments = "user, " + strings.TrimSuffix(field, ", ")
		}
		options := ""
		for _, p := range spec.Parameters {
			options += ", " + p.Name + "=" + given[p.Name]
		}
		for suffix, per := range map[string]string{"": "", "p": ", per=shop"} {
			definition := fmt.Sprintf("  f%d%s: %s(1h, pay, %s, where='b', tile=exact%s%s)\n", i, suffix, spec.Name, arguments, options, per)
			if _, err := defined.Parse(definitions + definition); err != nil {
				if per == "" {
					t.Logf("%s: %v", definition, err)
				}
				continue
			}
			definitions += definition
			names[fmt.Sprint("f", i, suffix)] = true
		}
	}
	if len(names) < len(aggregate.All) {
		t.Errorf("%d features of %d functions", len(names), len(aggregate.All))
	}
	r := newReplay(t, definitions+others)
	event := func(user string, ago int64, b bool) {
		r.event(`{"t":%d,"user":%q,"shop":"s","n":5,"x":5,"b":%t,"at":{"lat":1,"lon":2}}`, recorded*1000-ago, user, b)
	}
	for n := range int64(3) {
		event("u", 1000+n, true)
	}
	for name := range names {
		if a := r.answer(name, entityOf(name)); a.Capped || a.Status != query.Present && a.Status != query.NullValue {
			t.Errorf("%s before the flood: %s, capped %t", name, a.Status, a.Capped)
		}
	}
	for n := range int64(1010) { // a log keeps 1000
		event("u", n%1000, false)
	}
	for name := range names {
		checkWithheld(t, name, r.answer(name, entityOf(name)))
		if a := r.answer(name, "another"); a.Capped || a.Status != query.NotFound {
			t.Errorf("%s of another entity: %s, capped %t", name, a.Status, a.Capped)
		}
	}
}

func entityOf(feature string) string {
	if feature == "through" {
		return "s"
	}
	return "u"
}

// Whoever floods an entity with values makes no other value known, and none that was met before unknown, except in a log
// that drops the events: beyond what filters hold it is unknown whether a value was met. What is said to be new is new.
func TestFloodOfValuesSeen(t *testing.T) {
	definitions := `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {device: string, user: string%s}
features:
  logged: SEEN(30d, pay, device, user, tile=exact, max=500)
`
	fields, values := "", ""
	for n := range 18 { // which share the bytes of a key
		fields += fmt.Sprintf(", f%d: string", n)
		definitions += fmt.Sprintf("  seen%d: SEEN(30d, pay, device, f%[1]d)\n", n)
		values += fmt.Sprintf(`,"f%d":"u%%[1]d"`, n)
	}
	definitions = fmt.Sprintf(definitions, fields)
	r := newReplay(t, definitions)
	ask := func(name string, n int) query.Answer {
		f, _ := r.registry.Feature(name)
		return r.answerOf(f.AskedAbout([]value.Value{{Type: value.String, Str: fmt.Append(nil, "u", n)}}), "d")
	}
	flooded := false
	for n := range 10_000 {
		r.event(`{"t":%[2]d,"device":"d","user":"u%[1]d"`+values+"}", n, recorded*1000-int64(n%3)*86_400_000)
		if n != 100 && n != 2000 && n != 5000 && n != 9999 {
			continue
		}
		r.flush()
		for _, name := range []string{"seen0", "seen17", "logged"} {
			const asked = 1000
			yes, unknown, rate := 0, 0, 0.0
			for i := range asked {
				a := ask(name, 1_000_000+i)
				rate = a.FalsePositiveRate
				switch v := a.Items[0].Value; {
				case v.IsNull() && (!a.Capped || a.Exact):
					t.Fatalf("%s is unknown, and the answer does not say that it is capped: %+v", name, a)
				case v.IsNull():
					unknown++
				case v.Num == 1:
					yes++
				}
				if known := ask(name, i*n/asked).Items[0].Value; !known.IsNull() && known.Num == 0 {
					t.Fatalf("%s of %d values: u%d is said to be new", name, n, i*n/asked)
				}
			}
			for i := range 100 {
				if v := ask(name, i).Items[0].Value; name != "logged" && (v.IsNull() || v.Num != 1) {
					t.Fatalf("%s of %d values: u%d was met before the others, and is not known", name, n, i)
				}
			}
			if yes > 30 { // three times as many as fp allows
				t.Errorf("%s of %d values: %d of %d new values are said to have been met, with a stated rate of %v", name, n, yes, asked, rate)
			}
			flooded = flooded || unknown > 0
			if n == 100 && unknown > 0 {
				t.Errorf("%s of %d values: %d of %d new values are unknown", name, n, unknown, asked)
			}
		}
	}
	if !flooded {
		t.Error("no filter was flooded")
	}
}

// The log of a hot entity lacks its first events. Values that its last events decide are exact all the same, and others
// are capped.
func TestLatestOfAHotEntity(t *testing.T) {
	r := newReplay(t, `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {device: string, n: int}
features:
  list:   LAST_K(1d, pay, n, device, k=5, max=10)
  lag:    LAG(1d, pay, n, device, n=9, max=10)
  diff:   DIFF(1d, pay, n, device, max=10)
  streak: STREAK(1d, pay, device, condition='n > 20', max=10)
  idle:   IDLE_SINCE(1d, pay, device, tile=exact, max=10)
  odd:    LAST(1d, pay, n, device, tile=exact, where='n == 21', max=10)
  long:   STREAK(1d, pay, device, condition='n > 0', max=10)
  first:  FIRST(1d, pay, n, device, tile=exact, max=10)
  rare:   LAST(1d, pay, n, device, tile=exact, where='n == 2', max=10)
  fixed:  LAST_K(fixed 1h, pay, n, device, k=5, max=10)
`)
	for n := range 30 {
		r.event(`{"t":%d,"device":"d","n":%d}`, recorded*1000-30+int64(n), n)
	}
	for name, exact := range map[string]bool{
		"list": true, "lag": true, "diff": true, "streak": true, "idle": true, "odd": true,
		"long": false, "first": false, "rare": false, "fixed": false,
	} {
		if a := r.answer(name, "d"); a.Exact != exact || a.Capped == exact {
			t.Errorf("%s is exact: %v, capped: %v; want exact: %v", name, a.Exact, a.Capped, exact)
		}
	}
}
