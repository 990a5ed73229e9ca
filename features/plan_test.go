package features_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const minimal = `
streams:
  payment:
    topic: payments
    match: type == "payment"
    timestamp: at
    id: id
    max_future: 1m
    fields:
      user: string
      card: string
      cents: {type: int, path: amount.cents}
      big: {type: bool, expr: cents > 1000}
      note: string
features:
  count: COUNT(1h, payment, user)
  cards: COUNT_DISTINCT(1h, payment, user, card, method=last_seen, max=100)
  exact: COUNT(1h, payment, user, tile=exact, where='big')
  last: LAST(1h, payment, cents, user, tile=exact, where='cents > 5')
  apart: MAX(1h, payment, cents, user, tile=exact, where='big', per=card)
  each: SUM(1h, payment, cents, user, per=card)
  held: RATIO(1h, payment, user, condition='big')
  ratio: {expr: count / cards}
`

func mustParse(t *testing.T, text string) *features.Registry {
	t.Helper()
	return defined.Registry(t, text)
}

// A feature whose definitions never changed is complete forever; a feature of new definitions is complete since they
// were applied.
func TestCompletenessAfterChangedDefinitions(t *testing.T) {
	all := "count cards exact last apart each held ratio"
	for name, test := range map[string]struct {
		change []string // old and new texts
		since  string   // the features that are not complete forever
		equal  bool     // the definitions have the same meaning
	}{
		"none":                      {nil, "", true},
		"the order":                 {[]string{"      card: string\n", "", "      note: string\n", "      note: string\n      card: string\n"}, "", false},
		"a comment":                 {[]string{"features:", "# of users\nfeatures:"}, "", true},
		"an owner":                  {[]string{"COUNT(1h, payment, user)\n", "{function: count, window: 1h, stream: payment, by: [user], owner: me}\n"}, "", false},
		"a feature more":            {[]string{"features:", "features:\n  more: COUNT(lifetime, payment, card)"}, "more", false},
		"another field":             {[]string{"note: string", "note: int"}, "", false},
		"a field more":              {[]string{"note: string", "note: string\n      more: int"}, "", false},
		"the topic":                 {[]string{"topic: payments", "topic: others"}, all, false},
		"the match":                 {[]string{`type == "payment"`, `type == "pay"`}, all, false},
		"the timestamp":             {[]string{"timestamp: at", "timestamp: time"}, all, false},
		"a field's path":            {[]string{"amount.cents", "cents"}, "exact last apart each held", false},
		"a field's expression":      {[]string{"cents > 1000", "cents > 999"}, "exact apart held", false},
		"a category's path":         {[]string{"card: string", "card: {type: string, path: pan}"}, "cards apart each ratio", false},
		"another category":          {[]string{"cents, user, per=card", "cents, user, per=note"}, "each", false},
		"a greater max of keys":     {[]string{"cents, user, per=card", "cents, user, per=card, max=200"}, "each", false},
		"a lesser max of keys":      {[]string{"cents, user, per=card", "cents, user, per=card, max=20"}, "", false},
		"a category of a log":       {[]string{"'big', per=card", "'big', per=note"}, "apart", false},
		"a condition":               {[]string{"condition='big'", "condition='cents > 6'"}, "held", false},
		"a filter":                  {[]string{"cents > 5", "cents > 6"}, "last", false},
		"a longer window":           {[]string{"COUNT(1h, payment, user)\n", "COUNT(2h, payment, user)\n"}, "count ratio", false},
		"a shorter window":          {[]string{"COUNT(1h, payment, user)\n", "COUNT(30m, payment, user, tile=1m)\n"}, "", false},
		"more of the past":          {[]string{"COUNT(1h, payment, user)\n", "COUNT(1h, payment, user, keep=1d)\n"}, "count ratio", false},
		"a greater max":             {[]string{"max=100", "max=200"}, "cards ratio", false},
		"a lesser max":              {[]string{"max=100", "max=50"}, "", false},
		"a greater max of a log":    {[]string{"where='big'", "where='big', max=5000"}, "", false},
		"all events of a log":       {[]string{", where='big'", ""}, "exact", false},
		"a column of a log":         {[]string{"LAST(1h, payment, cents", "LAST(1h, payment, note"}, "last", false},
		"a filter of a log":         {[]string{"where='big'", "where='cents > 5'"}, "", false},
		"a condition for a filter":  {[]string{"  last: LAST(1h, payment, cents, user, tile=exact, where='cents > 5')", "  last: STREAK(1h, payment, user, condition='big')"}, "last", false},
		"a derived feature's parts": {[]string{"count / cards", "cards"}, "", false},
		"IDs for longer":            {[]string{"id: id", "id: id\n    remember_ids: 1h"}, "", false},
		"once by ID":                {[]string{"id: id", "id: id\n    dedup: 1h"}, all, false},
		"longer strings":            {[]string{"note: string", "note: {type: string, max_bytes: 1000}"}, "", false},
		"longer values":             {[]string{"card: string", "card: {type: string, max_bytes: 1000}"}, "apart cards each ratio", false},
		"longer keys":               {[]string{"user: string", "user: {type: string, max_bytes: 1000}"}, "", false},
		"longer values of a stream": {[]string{"max_future: 1m", "max_future: 1m\n    max_bytes: 100"}, "apart cards each ratio", false},
		"the future":                {[]string{"max_future: 1m", "max_future: 2m"}, "", false},
		"where late events go":      {[]string{"max_future: 1m", "max_future: 1m\n    late: dead_letter"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			text := minimal
			for i := 0; i+1 < len(test.change); i += 2 {
				if !strings.Contains(text, test.change[i]) {
					t.Fatalf("the definitions have no %q to change", test.change[i])
				}
				text = strings.Replace(text, test.change[i], test.change[i+1], 1)
			}
			before, after := mustParse(t, minimal), mustParse(t, text)
			if (before.Version() == after.Version()) != test.equal {
				t.Errorf("versions %s and %s, want equal: %v", before.Version(), after.Version(), test.equal)
			}
			if len(test.since) > 0 && before.Plan().Version == after.Plan().Version {
				t.Error("the plans have the same version")
			}
			var since []string
			for _, f := range after.Features {
				topic := f.Retained()[0].Topic
				h := state.History{
					PlanEpochs: []state.PlanEpoch{
						{Topic: topic, Version: before.Plan().Version, Last: 1000},
						{Topic: topic, Version: after.Plan().Version, Last: state.MaxTime},
					},
					Plans: map[string]*state.Plan{before.Plan().Version: before.Plan(), after.Plan().Version: after.Plan()},
				}
				switch got := h.CompleteSince(f.Retained()); got {
				case state.MinTime:
				case state.MaxTime:
					t.Errorf("%s is never complete, although its own definitions keep it", f.Name)
				default:
					since = append(since, f.Name)
					if got < 1001 {
						t.Errorf("%s is complete since %d, before the change", f.Name, got)
					}
				}
			}
			want := strings.Fields(test.since)
			if strings.Join(slices.Sorted(slices.Values(want)), " ") != strings.Join(since, " ") {
				t.Errorf("complete since the change: %v, want %v", since, want)
			}
		})
	}
}
