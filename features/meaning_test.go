package features_test

import "testing"

const meaningStream = `
streams:
  tx: {topic: tx, timestamp: ts, fields: {user: string, device: string, amount: decimal}}
features:
  a: COUNT(7d, tx, user)
  b: COUNT(1d, tx, user)
`

// The words say which field is counted and which names the entity, which in a definition only their order says.
func TestMeaning(t *testing.T) {
	for definition, want := range map[string]string{
		"COUNT(7d, tx, device)":                     "count of tx events for each device",
		"COUNT_DISTINCT(7d, tx, device, user)":      "count_distinct of user for each device",
		"COUNT_DISTINCT(7d, tx, user, device)":      "count_distinct of device for each user",
		"SUM(7d, tx, amount, user, device)":         "sum of amount for each user and device",
		"SUM(7d, tx, amount, user, per=device)":     "sum of amount for each user, split by device",
		"COUNT(7d, tx, SET(30d, tx, device, user))": "count of tx events for each user in the set of user for each device",
		"{expr: 'a / b'}":                           "",
	} {
		r := mustParse(t, meaningStream+"  f: "+definition+"\n")
		f, _ := r.Feature("f")
		if got := f.Meaning(); got != want {
			t.Errorf("%s: got %q, want %q", definition, got, want)
		}
	}
}
