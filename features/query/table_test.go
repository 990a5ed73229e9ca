package query

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// someTables has rows by table and key, and counts what is looked up.
type someTables struct {
	rows   map[string]*features.Row
	broken error
	found  int
}

func (s *someTables) Find(t *features.Table, key string, _ int64) (*features.Row, error) {
	s.found++
	return s.rows[t.Name+" "+key], s.broken
}

type noState struct{}

func (noState) Read(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
	return make([]state.WindowState, len(reads)), nil
}

// Derived features read rows beside other features and the event in hand.
func TestTables(t *testing.T) {
	feature := featuresOf(t, "tables.yaml")
	text := func(s string) value.Value { return value.Value{Type: value.String, Str: []byte(s)} }
	tables := &someTables{rows: map[string]*features.Row{
		"merchant m1":        {Time: 500, Values: []value.Value{text("m1"), text("high"), {Type: value.Decimal, Num: 1000, Scale: 2}, {}}},
		"merchant m9":        {Time: 301_001, Values: []value.Value{text("m9"), text("high"), {}, {}}},
		"merchant m8":        {Time: 301_000, Values: []value.Value{text("m8"), text("high"), {}, {}}},
		"merchant m2":        {Time: 500, Values: []value.Value{text("m2"), {}, {}, {}}},
		"country CH":         {Time: record.NoTime, Values: []value.Value{text("CH"), {Type: value.Bool, Num: 0}}},
		"blocked_users u1":   {Time: 500, Values: []value.Value{text("u1"), {}, text("me"), text("case 17")}},
		"blocked_users u2":   {Time: 500, Values: []value.Value{text("u2"), {Type: value.Timestamp, Num: 900}, {}, text("case 18")}},
		"blocked_accounts 7": {Time: 500, Values: []value.Value{{Type: value.Int, Num: 7}, {}, {}, {}}},
		"account 7":          {Time: 500, Values: []value.Value{{Type: value.Int, Num: 7}, {Type: value.Int, Num: 3}, {}}},
	}}
	pay := feature("over").InHand
	event := func(amount int64) *record.Event {
		return &record.Event{Stream: pay, Values: []value.Value{{}, {}, {Type: value.Decimal, Num: amount, Scale: 2}}}
	}
	var r Reading
	ask := func(name, entity string, at int64, inHand *record.Event) string {
		t.Helper()
		f := feature(name)
		r.Reset(1000)
		r.SetInHand(inHand)
		r.SetTables(tables)
		r.Want(f, entity, at)
		if err := r.Read(t.Context(), noState{}); err != nil {
			t.Fatal(err)
		}
		var a Answer
		r.Next(&a)
		return fmt.Sprintf("%s %s %t", a.AppendValue(nil), a.Status, a.Exact)
	}
	for _, c := range []struct {
		name, entity string
		at           int64
		inHand       *record.Event
		want         string
	}{
		{"merchant_risk", "m1", 1000, nil, `"high" PRESENT true`},
		{"merchant_risk", "m2", 1000, nil, "null NULL_VALUE true"},
		{"merchant_risk", "m3", 1000, nil, "null NOT_FOUND true"},
		{"merchant_risk", "m1", 400, nil, `"high" LATER_EVENTS false`}, // the row is newer, and older ones are not known
		{"merchant_risk", "m1", 500, nil, `"high" PRESENT true`},
		{"merchant_risk", "m9", 1000, nil, `"high" LATER_EVENTS false`}, // as of an event that is enriched later
		{"merchant_risk", "m8", 1000, nil, `"high" PRESENT true`},       // clocks differ
		{"risk_here", "m1", 1000, nil, `"high" PRESENT true`},
		{"risk_here", "m3", 1000, nil, `"unknown" NOT_FOUND true`},
		{"over", "u|m1", 1000, event(1000), "false PRESENT true"},
		{"over", "u|m1", 1000, event(1001), "true PRESENT true"},
		{"over", "u|m1", 1000, nil, "null NO_EVENT false"},
		{"over", "u|m3", 1000, event(1001), "null NOT_FOUND true"},
		{"both", "u|m1", 1000, event(1001), "true PRESENT true"},
		{"risky", "CH", 10, nil, "false PRESENT true"},
		{"risky", "XX", 1000, nil, "true NOT_FOUND true"},
		{"blocked", "u1", 1000, nil, "true PRESENT true"},
		{"blocked", "u1", 400, nil, "true LATER_EVENTS false"},
		{"blocked", "u2", 899, nil, "true PRESENT true"},
		{"blocked", "u2", 900, nil, "false NOT_FOUND true"}, // until then
		{"blocked", "u3", 1000, nil, "false NOT_FOUND true"},
		{"why", "u1", 1000, nil, `"case 17" PRESENT true`},
		{"why", "u2", 1000, nil, "null NOT_FOUND true"},
		{"trusted", "u3|8|m1", 1000, nil, "true PRESENT true"},
		{"trusted", "u3|7|m1", 1000, nil, "false PRESENT true"},
		{"trusted", "u3|8|m3", 1000, nil, "false NOT_FOUND true"},
		{"trusted", "u1|8|m1", 1000, nil, "false PRESENT true"},
		{"level", "7|CH", 1000, nil, "3 PRESENT true"},
	} {
		if got := ask(c.name, c.entity, c.at, c.inHand); got != c.want {
			t.Errorf("%s of %s at %d: got %s, want %s", c.name, c.entity, c.at, got, c.want)
		}
	}
	if tables.found = 0; ask("both", "u|m1", 1000, event(1)) == "" || tables.found != 1 {
		t.Errorf("a row that an answer needs twice is looked up %d times", tables.found)
	}
	tables.broken = fmt.Errorf("not whole: %w", state.ErrUnavailable)
	for _, name := range []string{"merchant_risk", "risk_here", "risky", "blocked"} { // also with a default
		if got := ask(name, "m1", 1000, nil); got != "null UNAVAILABLE false" {
			t.Errorf("%s of a table that is not whole: got %s", name, got)
		}
	}
	if tables = nil; true {
		r.Reset(1000)
		r.SetTables(nil)
		r.Want(feature("merchant_risk"), "m1", 1000)
		var a Answer
		if err := r.Read(t.Context(), noState{}); err != nil {
			t.Fatal(err)
		}
		if r.Next(&a); a.Status != Unavailable || !errors.Is(a.Err, state.ErrUnavailable) {
			t.Errorf("without tables: got %s, %v", a.Status, a.Err)
		}
	}
}

// What a feature over tables says about itself.
func TestDescribedTables(t *testing.T) {
	feature := featuresOf(t, "tables.yaml")
	for name, want := range map[string]string{
		"merchant_risk": "[shop] {expr: 'merchant.risk', by: shop}: reads risk of the row of table merchant for shop",
		"risk_here":     `[merchant_id] {expr: 'merchant.risk ?? "unknown"'}: reads risk of the row of table merchant for merchant_id`,
		"over": "[user shop] {expr: 'spent + event.amount > merchant.limit', stream: pay, by: shop}: reads the event of pay in hand, of which nothing is kept, " +
			"and limit of the row of table merchant for shop",
		"hidden":  "[ip] {expr: 'ip in vpn_networks'}: reads whether ip is in vpn_networks",
		"blocked": "[user] {expr: 'user in blocked_users'}: reads whether user is in blocked_users",
		"trusted": "[user id shop] {expr: 'not (user in blocked_users) and shop in merchant and not (id in blocked_accounts)'}: reads whether user is in blocked_users, " +
			"and whether shop is in merchant, and whether id is in blocked_accounts",
		"level": "[id code] {expr: 'account.level + (country.risky ? 1 : 0)'}: reads level of the row of table account for id, and risky of the row of table country for code",
	} {
		f := feature(name)
		if got := fmt.Sprintf("%v %s: %s", f.By, f.Definition, f.Meaning()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if f.Forgets() != (name == "over") {
			t.Errorf("%s forgets: %t", name, f.Forgets())
		}
	}
	names := func(name string) (list []string) {
		for _, t := range feature(name).Tables() {
			list = append(list, t.Name)
		}
		return list
	}
	if got := fmt.Sprint(names("both"), names("level"), names("spent")); got != "[merchant] [account country] []" {
		t.Errorf("tables %s", got)
	}
}
