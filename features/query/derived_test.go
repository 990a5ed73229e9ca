package query

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// featuresOf finds the features of one of the good definitions of package definition's tests.
func featuresOf(t *testing.T, file string) func(name string) *features.Feature {
	t.Helper()
	r, err := definition.Load("../definition/testdata/good/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) *features.Feature { return defined.Feature(t, r, name) }
}

func TestDerivedFeature(t *testing.T) {
	feature := featuresOf(t, "derived.yaml")
	f := feature("shared_and_declined")
	if diff := cmp.Diff([]string{"user", "device"}, f.By); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]value.Type{value.String, value.String}, f.ByTypes); diff != "" {
		t.Errorf("types of keys (-want +got):\n%s", diff)
	}
	if f.Keep != 30*time.Minute || !f.Forgets() {
		t.Errorf("kept for %s, want 30m, the shortest time of its parts", f.Keep)
	}
	if f := feature("newest"); f.Forgets() {
		t.Error("a feature with only lifetime windows is forgotten")
	}
	if f.Description != "said by itself" || f.Owner != "risk" {
		t.Errorf("description %q, owner %q; want its own and risk", f.Description, f.Owner)
	}
	if got := feature("user_approval_rate").Description; got != "The part of a user's payments that is approved." {
		t.Errorf("the description of user_approval_rate is %q", got)
	}
	for name, want := range map[string]struct {
		typ        value.Type
		definition string
	}{
		"user_approval_rate":  {value.Float, "{expr: 'user_approved_1d / user_tx_1d', default: 0}"},
		"shared_and_declined": {value.Bool, "{expr: 'user_approval_rate < 0.5 and device_users_30d > 3', default: false}"},
		"left":                {value.Decimal, "{expr: '1000 - user_amount_1d', default: 999.5}"},
		"missing":             {value.Int, "{expr: 'user_tx_1d - user_approved_1d', default: -1}"},
		"level":               {value.String, `{expr: 'user_tx_1d > 100 ? "it''s high" : nil', default: 'it''s "low"'}`},
		"newest":              {value.Timestamp, "{expr: 'user_last', default: 0}"},
		"spread":              {value.Float, "{expr: 'left / user_average_7d'}"},
	} {
		if f := feature(name); f.Type() != want.typ || f.Definition != want.definition {
			t.Errorf("%s has the type %s and the definition %s\nwant %s, %s", name, f.Type(), f.Definition, want.typ, want.definition)
		}
	}
}

// A derived feature reads what its parts read, each for the entity made from its keys.
func TestDerivedReads(t *testing.T) {
	feature := featuresOf(t, "derived.yaml")
	const at = int64(1_532_520_000_000)
	var want, r Reading
	want.Reset(at)
	for _, part := range []string{"user_approved_1d", "user_tx_1d"} {
		want.Want(feature(part), `u\|1`, at)
	}
	want.Want(feature("device_users_30d"), "d1", at)
	r.Reset(at)
	r.Want(feature("shared_and_declined"), `u\|1|d1`, at)
	if diff := cmp.Diff(want.reads, r.reads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDerivedAnswer(t *testing.T) {
	r := defined.Features(t,
		"sum: SUM(1d, tx, amount, user)", "count: COUNT(7d, tx, user)", "ever: COUNT(lifetime, tx, user)",
		"recent: COUNT_DISTINCT(1h, login, user, device, method=last_seen, max=3)",
		"estimate: APPROX_COUNT_DISTINCT(30d, login, user, device)",
		"mean: {expr: sum / count, default: 0.5}", "bare: {expr: sum / count}", "all: {expr: mean + ever}",
		"capped: {expr: recent * 2}", "rough: {expr: estimate + count}", "huge: {expr: count * 9000000000000000000}",
		"beyond: {expr: count * 9000000000000000000 * 9000000000000000000 * 9, default: 7}",
		"float: {expr: exp(1000 * count), default: 0}", "other: {expr: 'exp(1000 * count) ?? 5', default: 0}")
	const at, now = int64(1_532_520_000_000), int64(1_532_520_000_001)
	buckets := func(num int64, v value.Value) state.WindowState {
		v.Num = num
		return state.WindowState{Buckets: []state.Bucket{{Tile: 1, Value: v}}}
	}
	money, number := value.Value{Type: value.Decimal, Scale: 2}, value.Value{Type: value.Int}
	type answer struct {
		Value, Window string
		Status        Status
		Exact         bool
		Uncertain     int64
		Capped        bool
		StandardError float64
	}
	const hour, day = int64(3_600_000), 24 * int64(3_600_000)
	midnight := at - 12*hour
	weekly := fmt.Sprint(midnight-6*day, " ", now)
	for _, test := range []struct {
		name   string
		states []state.WindowState
		want   answer
	}{
		{"mean", []state.WindowState{buckets(1050, money), buckets(4, number)}, answer{Value: "2.625", Window: weekly, Status: Present, Exact: true}},
		{"mean", []state.WindowState{buckets(1050, money), {}}, answer{Value: "0.5", Window: weekly, Status: Present, Exact: true}},
		{"mean", make([]state.WindowState, 2), answer{Value: "0.5", Window: weekly, Status: NotFound, Exact: true}},
		{"bare", []state.WindowState{buckets(1050, money), {}}, answer{Window: weekly, Status: NullValue, Exact: true}},
		{"all", []state.WindowState{{}, {}, buckets(4, number)}, answer{Value: "4.5", Window: fmt.Sprint("- ", now), Status: LaterEvents}},
		{"capped", []state.WindowState{{Count: 2, After: 1}}, answer{
			Value: "4", Window: fmt.Sprint(at-hour+1, " ", at), Status: LaterEvents, Uncertain: 1, Capped: true}},
		{"rough", []state.WindowState{{Count: 7}, buckets(1, number)}, answer{
			Value: "8", Window: fmt.Sprint(midnight-29*day, " ", now), Status: Present, StandardError: 0.0081}},
		{"huge", []state.WindowState{buckets(3, number)}, answer{Value: "27000000000000000000", Window: weekly, Status: Present, Exact: true}},
		{"beyond", []state.WindowState{buckets(3, number)}, answer{Window: weekly, Status: NullValue, Capped: true}},
		{"float", []state.WindowState{buckets(3, number)}, answer{Window: weekly, Status: NullValue, Capped: true}},
		{"float", []state.WindowState{buckets(-3, number)}, answer{Value: "0", Window: weekly, Status: Present, Exact: true}},
		{"other", []state.WindowState{buckets(3, number)}, answer{Value: "5", Window: weekly, Status: Present, Capped: true}},
	} {
		f, _ := r.Feature(test.name)
		var reading Reading
		reading.Reset(now)
		reading.Want(f, "ann", at)
		if err := reading.Read(context.Background(), held(test.states)); err != nil {
			t.Fatal(err)
		}
		var a Answer
		reading.Next(&a)
		from := "-"
		if a.From != state.MinTime {
			from = fmt.Sprint(a.From)
		}
		got := answer{string(a.Value.AppendText(nil)), fmt.Sprint(from, " ", a.To), a.Status, a.Exact, a.Uncertain, a.Capped, a.StandardError}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Definition, diff)
		}
	}
}

// A derived feature covers what its parts cover, also where events or bounds determine that.
func TestDerivedCoverage(t *testing.T) {
	r := defined.Features(t, "session: COUNT(session 30m, tx, user)", "newest: COUNT(last 2, tx, user)",
		"before: COUNT(1h, tx, user, tile=exact, bounds='[)')", "both: {expr: newest + session}", "one: {expr: newest + 0}",
		"whole: {expr: one + before}", "edge: {expr: before * 2}")
	const minute = int64(60_000)
	log := []byte(state.LogHeader)
	for _, m := range []int64{0, 60, 70, 80} {
		log = state.AppendLogRecord(log, state.AppendLogTime(nil, m*minute))
	}
	for name, want := range map[string][2]int64{
		"both": {60 * minute, 90 * minute}, "one": {70 * minute, 90 * minute},
		"whole": {30 * minute, 90 * minute}, "edge": {30 * minute, 90*minute - 1},
	} {
		f, _ := r.Feature(name)
		var reading Reading
		reading.Reset(90 * minute)
		reading.Want(f, "ann", 90*minute)
		if err := reading.Read(context.Background(), held{{Log: log}, {Log: log}}[:len(reading.reads)]); err != nil {
			t.Fatal(err)
		}
		var a Answer
		reading.Next(&a)
		if got := [2]int64{a.From, a.To}; got != want || a.Status != Present {
			t.Errorf("%s covers %d, %s; want %d", f.Definition, got, a.Status, want)
		}
	}
}

func TestDerivedFeatureExplained(t *testing.T) {
	r := defined.Features(t,
		"sum: SUM(1d, tx, amount, user)", "count: COUNT(1d, tx, user)",
		"estimate: APPROX_COUNT_DISTINCT(7d, login, user, device)",
		"mean: {expr: sum / count}", "rough: {expr: mean + sum * 2 + estimate}")
	explained := map[string]cost.Feature{}
	for _, f := range cost.Explain(r).Features {
		explained[f.Name] = f
	}
	for name, want := range map[string]cost.Feature{
		"mean": {
			Name: "mean", Definition: "{expr: 'sum / count'}", Parts: []string{"sum", "count"},
			State: []string{"tiles"}, Series: append(explained["sum"].Series, explained["count"].Series...),
			Keys: 1, RoundTrips: 1, Exact: true, // one key holds both
		},
		"rough": {
			Name: "rough", Definition: "{expr: 'mean + sum * 2 + estimate'}", Parts: []string{"mean", "sum", "estimate"},
			State: []string{"tiles", "sketches"}, Series: append(explained["mean"].Series, explained["estimate"].Series...),
			Keys: 1, RoundTrips: 1, StandardError: 0.0081,
		},
	} {
		if diff := cmp.Diff(want, explained[name]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Parts that are used twice at every level double what is read.
func TestDerivedFeatureOfTooManyParts(t *testing.T) {
	lines := []string{"x0: COUNT(1d, tx, user)", "y0: COUNT(7d, tx, user)"}
	for i := range 9 {
		lines = append(lines, fmt.Sprintf("x%d: {expr: x%d + y%d}", i+1, i, i), fmt.Sprintf("y%d: {expr: x%d - y%d}", i+1, i, i))
	}
	_, err := defined.Parse(defined.Streams + "  " + strings.Join(lines, "\n  ") + "\n")
	want := []string{
		"test.yaml:38:14: the feature reads 512 series through its parts, more than 256",
		"test.yaml:39:14: the feature reads 512 series through its parts, more than 256",
	}
	if err == nil {
		t.Fatal("the definitions were accepted")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// Every function states the type of its results.
func TestResultTypes(t *testing.T) {
	samples := map[value.Type]value.Value{
		value.Null: {}, value.String: {Type: value.String, Str: []byte("x")}, value.Int: {Type: value.Int, Num: 1},
		value.Float: {Type: value.Float, Flt: 1.5}, value.Decimal: {Type: value.Decimal, Scale: 2, Num: 150},
		value.Bool: {Type: value.Bool, Num: 1}, value.Timestamp: {Type: value.Timestamp, Num: 1}, value.Location: {Type: value.Location, Flt: 1},
	}
	for _, k := range aggregate.All {
		types := k.Spec().Types
		if types == nil {
			types = []value.Type{value.Null}
		}
		for _, typ := range types {
			spec := k.Spec()
			f := &features.Feature{Basis: features.OverStream{}, Function: k, Spec: &spec, Call: aggregate.Call{
				Type: typ, Scale: 2, Max: 3, N: 1, P: 0.5, Duration: 1, Bins: []value.Value{samples[typ]},
			}}
			shaped := k.Spec().Shape != aggregate.Scalar
			if k.Spec().Members == aggregate.MembersRequired {
				shaped, f.Call.Members = true, []value.Value{samples[typ]}
			}
			r := k.Fold(f.Call, 3, []aggregate.Sample{{Time: 1, Value: samples[typ]}, {Time: 2, Value: samples[typ]}})
			values := []value.Value{r.Value}
			for _, i := range r.Items {
				values = append(values, i.Value, i.From, i.To)
			}
			for _, v := range values {
				if !v.IsNull() && v.Type != f.Type() {
					t.Errorf("%s of a field of type %s has the type %s, but states %s", k.Spec().Name, typ, v.Type, f.Type())
				}
			}
			if r.IsNull() || (r.Items != nil) != shaped {
				t.Errorf("%s of a field of type %s has the wrong shape: %+v", k.Spec().Name, typ, r)
			}
		}
	}
}

// A derived feature is no more exact than the quantile that it depends on.
func TestDerivedOfAQuantile(t *testing.T) {
	r := defined.Features(t, "median: QUANTILE(7d, tx, amount, user, p=0.5, error=0.02)", "count: COUNT(7d, tx, user)",
		"share: {expr: median / count}")
	f, _ := r.Feature("share")
	var reading Reading
	reading.Reset(0)
	reading.Want(f, "u", 0)
	if err := reading.Read(context.Background(), held(make([]state.WindowState, 2))); err != nil {
		t.Fatal(err)
	}
	var a Answer
	reading.Next(&a)
	if a.Exact || a.RelativeError != 0.02 {
		t.Errorf("exact %v, relative error %v; want false, 0.02", a.Exact, a.RelativeError)
	}
}

// held is a reader that answers all reads with the same window states.
type held []state.WindowState

func (h held) Read(context.Context, []state.Read) ([]state.WindowState, error) { return h, nil }
