package definition

import "testing"

func TestMacrosEqualTheirExpansions(t *testing.T) {
	r, err := Load("testdata/good/macros.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"devices_of_user": `COUNT_DISTINCT(1d, transaction, user_id, device_id)`,
		"devices_kept":    `COUNT_DISTINCT(1d, transaction, user_id, device_id, keep=2h)`,
		"approved": `SUM(7d, transaction, amount, user_id, tile=1h, where="status != \"state\" and status == \"approved\" and ` +
			`not (ok or amount > 10) and user_id != \"it's \\\"user\\\"\"")`,
		"paid": `SUM(7d, transaction, amount, user_id, tile=12h, where="status != \"state\" and status == status and ` +
			`not ok and user_id != \"it's \\\"user\\\"\"")`,
		"part":        `RATIO(1d, transaction, user_id, condition='status == "rule" and (ok or amount > 10)')`,
		"spent":       `AVG(7d, transaction, amount, user_id, device_id, tile=1h, where='status == "a" + "b" and status != "state"')`,
		"spent_today": `SUM(1d, transaction, amount, user_id, device_id, where='status == "approved" and status != "state"', keep=2h)`,
		"bins":        `HISTOGRAM(1d, transaction, amount, user_id, device_id, bins=[10, 100], tile=exact, max=50, keep=90m)`,
		"share":       `{expr: 'approved / (paid - 1 + 1)', default: 1}`,
		"other_share": `{expr: 'approved / (paid + 1)'}`,
		"filtered":    `COUNT(1h, transaction, device_id, where='status == "a, b"')`,
		"greatest":    `MAX(30m, transaction, amount, user_id)`,
	} {
		f, ok := r.Feature(name)
		if !ok || f.Definition != want {
			t.Errorf("%s is\n%s, want\n%s", name, f.Definition, want)
		}
	}
	if f, _ := r.Feature("approved"); f.Description != "paid by a user" {
		t.Errorf("approved: description %q, want that of the macro", f.Description)
	}
	for name, want := range map[string]string{"spent": "what a user has spent", "other_share": "said"} {
		if f, _ := r.Feature(name); f.Description != want {
			t.Errorf("%s: description %q, want %q", name, f.Description, want)
		}
	}
	if f, _ := r.Feature("devices_kept"); f.Owner != "risk" {
		t.Errorf("devices_kept: owner %q, want risk", f.Owner)
	}
}
