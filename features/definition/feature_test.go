package definition

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// testStreams are the streams of tests of features. Package defined has the same, but imports this package.
func testStreams(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../internal/testkit/defined/streams.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parse compiles definitions, which findings say are in test.yaml.
func parse(definitions string) (*features.Registry, error) {
	return LoadFiles(features.Files{Definitions: []features.File{{Path: "test.yaml", Text: definitions}}})
}

// load compiles features, "name: definition" each, over testStreams.
func load(t testing.TB, definitions ...string) *features.Registry {
	t.Helper()
	r, err := parse(testStreams(t) + "  " + strings.Join(definitions, "\n  ") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sameMeaning describes the first difference between two registries, except in descriptions and owners.
func sameMeaning(a, b *features.Feature) string {
	type meaning struct {
		Name, Stream, Where, Definition string
		By                              []string
		ByTypes                         []value.Type
		Function                        string
		Call                            aggregate.Call
		Window                          window.Window
		Keep                            time.Duration
		Series                          []string
		Type                            value.Type
		Default                         value.Value
		Parts                           []string
	}
	of := func(f *features.Feature) meaning {
		m := meaning{
			f.Name, "", f.Where, f.Definition, f.By, f.ByTypes, fmt.Sprintf("%T", f.Function),
			f.Call, f.Window, f.Keep, nil, f.Type(), value.Value{}, nil,
		}
		if of, ok := f.Basis.(*features.Derived); ok {
			m.Default = of.Default
		} else {
			m.Stream = f.Stream.Name
		}
		for _, part := range f.Parts() {
			m.Parts = append(m.Parts, part.Name)
		}
		for _, s := range f.Series {
			m.Series = append(m.Series, s.ID)
		}
		return m
	}
	return cmp.Diff(of(a), of(b), cmp.Comparer(func(a, b window.Calendar) bool { return a.String() == b.String() }),
		cmpopts.EquateComparable(state.Secret{}))
}

// checkRoundTrip reports features whose Definition does not define them again.
func checkRoundTrip(t *testing.T, r *features.Registry) {
	t.Helper()
	l := newLoader()
	l.streams.registry.Streams, l.streams.registry.Tables = r.Streams, r.Tables
	for _, f := range r.Features {
		for _, document := range l.documents("definition", []byte(f.Definition)) {
			l.features[f.Name] = named{name: word{text: f.Name}, node: document}
		}
	}
	for _, f := range r.Features {
		again := l.featureNamed(f.Name)
		if len(l.findings) > 0 {
			t.Fatalf("%s: %s", f.Definition, l.findings)
		}
		if diff := sameMeaning(f, again); diff != "" {
			t.Errorf("%s means something else (-first +again):\n%s", f.Definition, diff)
		}
	}
}

func TestDefinitionIsCanonical(t *testing.T) {
	for definition, want := range map[string]string{
		`count( 7d,tx , user )`:                                                                       `COUNT(7d, tx, user)`,
		`COUNT(1w, tx, user, tile=24h, keep=60m)`:                                                     `COUNT(7d, tx, user)`,
		`COUNT(24h, tx, user, tile=1m)`:                                                               `COUNT(1d, tx, user, tile=1m)`,
		`SUM(1h30m, tx, amount, user, device, keep=0s)`:                                               `SUM(90m, tx, amount, user, device, keep=0s)`,
		`COUNT_DISTINCT(7d, tx, user, device, method=SET)`:                                            `COUNT_DISTINCT(7d, tx, user, device)`,
		`COUNT_DISTINCT(7d, tx, user, device, method=last_seen, max=1000)`:                            `COUNT_DISTINCT(7d, tx, user, device, method=last_seen)`,
		`COUNT_DISTINCT(LIFETIME, tx, user, device, method=last_seen, max=9, description=x, owner=y)`: `COUNT_DISTINCT(lifetime, tx, user, device, method=last_seen, max=9)`,
		`COUNT({calendar: DAY, tz: Asia/Shanghai}, tx, user)`:                                         `COUNT(calendar day tz Asia/Shanghai, tx, user)`,
		`COUNT({calendar:week}, tx, user, tile=24h)`:                                                  `COUNT(calendar week tz UTC, tx, user)`,
		`COUNT(calendar week tz UTC starts Sunday, tx, user, tile=1h)`:                                `COUNT(calendar week tz UTC starts sunday, tx, user, tile=1h)`,
		`COUNT({ fixed: 60m , max_length: 24h }, tx, user, tile=exact)`:                               `COUNT(fixed 1h, tx, user)`,
		`COUNT(max_length 2d  session 30m, tx, user)`:                                                 `COUNT(session 30m max_length 2d, tx, user)`,
		`COUNT(lifetime last 20, tx, user)`:                                                           `COUNT(last 20, tx, user)`,
		`COUNT({rolling: lifetime, last: 20}, tx, user)`:                                              `COUNT(last 20, tx, user)`,
		`COUNT(24h last 10, tx, user)`:                                                                `COUNT(rolling 1d last 10, tx, user)`,
		`COUNT(last 10 rolling 24h, tx, user, exclude=current)`:                                       `COUNT(rolling 1d last 10, tx, user, exclude=current)`,
		`COUNT({last: 5000}, tx, user, max=5000)`:                                                     `COUNT(last 5000, tx, user)`,
		`COUNT(last 5000, tx, user, max=6000)`:                                                        `COUNT(last 5000, tx, user, max=6000)`,
		`COUNT(rolling lifetime, tx, user, tile=exact, exclude=current_time)`:                         `COUNT(lifetime, tx, user, tile=exact, exclude=current_time)`,
		`COUNT(tumbling 300s, tx, user, tile=1s)`:                                                     `COUNT(tumbling 5m, tx, user)`,
		`APPROX_COUNT_DISTINCT(session 30m, tx, user, device, tile=exact)`:                            `APPROX_COUNT_DISTINCT(session 30m, tx, user, device, tile=exact)`,
		`COUNT(7d, tx, user, where="user  ==  \"it's\"")`:                                             `COUNT(7d, tx, user, where="user == \"it's\"")`,
		`COUNT(7d, tx, user, where='(ok)')`:                                                           `COUNT(7d, tx, user, where='ok')`,
	} {
		r := load(t, "f: >-\n    "+definition)
		if got := r.Features[0].Definition; got != want {
			t.Errorf("%s\n got %s\nwant %s", definition, got, want)
		}
		checkRoundTrip(t, r)
	}
}

func TestFormsAreEquivalent(t *testing.T) {
	r := load(t,
		`one: SUM(1d, tx, amount, user, device, where="ok", tile=30m, keep=2h, description="a, b", owner=risk)`,
		`two: {function: SUM, stream: tx, field: amount, by: [user, device], window: {rolling: 24h}, where: ok, tile: 30m, keep: 2h, description: "a, b", owner: risk}`)
	one, two := r.Features[0], r.Features[1]
	two.Name = one.Name
	if diff := sameMeaning(one, two); diff != "" {
		t.Errorf("(-one line +long form):\n%s", diff)
	}
	if one.Description != "a, b" || one.Owner != "risk" || two.Description != one.Description || two.Owner != one.Owner {
		t.Errorf("description %q and %q, owner %q and %q", one.Description, two.Description, one.Owner, two.Owner)
	}
}

func TestFeatureOfTheLongForm(t *testing.T) {
	r, err := Load("testdata/good/forms.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, _ := r.Feature("long")
	if diff := cmp.Diff([]string{"user", "n"}, f.By); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]value.Type{value.String, value.Int}, f.ByTypes); diff != "" {
		t.Error(diff)
	}
	if want := (window.Window{Type: window.Rolling{Size: 90 * time.Minute}, Tile: time.Minute}); f.Window != want || f.Keep != 0 {
		t.Errorf("window %+v, keep %s; want %+v, keep 0s", f.Window, f.Keep, want)
	}
	if want := (aggregate.Call{Type: value.Decimal, Scale: 4}); !cmp.Equal(f.Call, want, cmpopts.EquateComparable(state.Secret{})) {
		t.Errorf("call %+v, want %+v", f.Call, want)
	}
	ever, _ := r.Feature("for_ever")
	if ever.Window != (window.Window{}) || ever.Call.Type != value.Timestamp {
		t.Errorf("lifetime: window %+v, type %s; want no window, timestamp", ever.Window, ever.Call.Type)
	}
	for name, want := range map[string]string{
		"one_line": "A comment above a feature is its description, over as many lines as it takes.",
		"quoted":   "said by itself",
		"folded":   "",
		"long":     "fees in the long form",
	} {
		if f, _ := r.Feature(name); f.Description != want {
			t.Errorf("description of %s is %q, want %q", name, f.Description, want)
		}
	}
}

func TestStreamOptions(t *testing.T) {
	r, err := Load("testdata/good/forms.yaml")
	if err != nil {
		t.Fatal(err)
	}
	login, _ := r.Stream("login")
	tx, _ := r.Stream("tx")
	type options struct {
		Topic, Match, Format string
		Timestamp            record.TimestampPath
		ID                   []string
		MaxFuture            time.Duration
		DeadLetter           bool
	}
	of := func(s *record.Stream) options {
		o := options{s.Topic, "", s.Format.String(), s.Timestamp, s.ID, s.MaxFuture, s.LateToDeadLetter}
		if s.Match != nil {
			o.Match = s.Match.Text
		}
		return o
	}
	if diff := cmp.Diff(options{
		"app.events", `type == "login"`, "json", record.TimestampPath{Path: []string{"at"}, Form: record.TimeForm{Unit: "rfc3339"}},
		[]string{"meta", "id"}, 90 * time.Second, true,
	}, of(login)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(options{
		"transactions", "", "json", record.TimestampPath{Path: []string{"event", "ts"}, Form: record.TimeForm{Unit: "ms"}}, nil, 5 * time.Minute, false,
	}, of(tx)); diff != "" {
		t.Error(diff)
	}
	user, fee, derived := login.Fields[0], login.Fields[4], login.Fields[2]
	if !user.Required || user.Path[0] != "who" || fee.Scale != 4 || tx.Fields[2].Scale != defaultScale {
		t.Errorf("unexpected fields %+v, %+v, %+v", user, fee, tx.Fields[2])
	}
	if derived.Expr == nil || derived.Path != nil {
		t.Errorf("the derived field has no expression, or a path: %+v", derived)
	}
	if got := r.Topics(); cmp.Diff([]string{"app.events", "transactions"}, got) != "" {
		t.Errorf("topics %v, want app.events and transactions", got)
	}
}

func TestEnrichedTopics(t *testing.T) {
	r, err := Load("testdata/good/enrich.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.EnrichedTopics(); cmp.Diff([]string{"transactions.enriched", "transactions.scored"}, got) != "" {
		t.Errorf("topics %q, want transactions.enriched and transactions.scored", got)
	}
	scored, _ := r.Stream("scored")
	if e := r.Enrichment(scored); e.Service.Name != "user_risk" || !e.Avro || r.Enrichments[1].Avro || r.Enrichment(r.Streams[0]) != nil {
		t.Errorf("stream scored is enriched with %+v, want user_risk in Avro; login with %+v, want nothing", r.Enrichment(scored), r.Enrichment(r.Streams[0]))
	}
}

func feature(t *testing.T, r *features.Registry, name string) *features.Feature {
	t.Helper()
	f, ok := r.Feature(name)
	if !ok {
		t.Fatalf("no feature %q", name)
	}
	return f
}
