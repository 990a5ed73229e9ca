package definition

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features"
)

// A filter that compares with the event in hand makes a window exact, keeps the fields that it reads in the log, and leaves
// the rest of it to the mapper.
func TestComparedWithTheEventInHand(t *testing.T) {
	r, err := Load("testdata/good/compared.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"same_amount": `COUNT(1h, tx, user, where='abs(amount - event.amount) < 0.01')` + " [amount] []",
		"elsewhere": `COUNT(1h, tx, user, where='ok and merchant != event.merchant and (amount > 0.12345678901234567 or not ok)')` +
			" [merchant] [ok and (amount > 0.12345678901234567 or not ok)]",
		"from_here":   `AVG(7d, tx, amount, user, where='ip == event.ip')` + " [ip] []",
		"either":      `COUNT(1d, tx, user, where='ok or event.ok')` + " [ok] []",
		"alone":       `COUNT(1d, tx, user, where='event.amount > 100')` + " [] []",
		"exact":       `COUNT(1d, tx, user, where='0 < event.amount and event.amount < amount')` + " [amount] []",
		"ever":        `COUNT(lifetime, tx, user, tile=exact, where='ip == event.ip', max=50)` + " [ip] []",
		"chosen":      `COUNT_DISTINCT(1d, tx, user, merchant, method=hll, tile=exact, where='ip == event.ip')` + " [ip] []",
		"last_three":  `LAST_K(lifetime, tx, merchant, user, k=3, where='ip == event.ip')` + " [ip] []",
		"in_session":  `COUNT(session 10m, tx, user, where='tenth == event.tenth')` + " [tenth] []",
		"by_merchant": `COUNT(1d, tx, user, where='ip == event.ip', per=merchant)` + " [ip] []",
		"near":        `MAX(1d, tx, amount, user, where='haversine(home, event.home) < 1 and at < event.at')` + " [home at] []",
		"met":         `SEEN(30d, tx, user, merchant, where='ip == event.ip')` + " [ip] []",
		"of_kind":     `COUNT(1d, tx, user, where='event == event.event')` + " [event] []",
		"again":       `COUNT(1h, tx, user, where='merchant == event.merchant')` + " [merchant] []",
	} {
		f, _ := r.Feature(name)
		var fields []string
		for i, field := range f.Compared.Fields {
			fields = append(fields, f.Stream.Fields[field].Name)
			if c := f.Compared.Columns[i]; c == nil || c.Type != f.Stream.Fields[field].Type {
				t.Errorf("%s: the log keeps %+v of field %s", name, c, f.Stream.Fields[field].Name)
			}
		}
		if got := fmt.Sprint(f.Definition, " ", fields, " [", f.Mapped(), "]"); got != want || !f.Window.Exact || f.InHand != f.Stream {
			t.Errorf("%s is %s\nwant   %s", name, got, want)
		}
	}
	if f, _ := r.Feature("share"); f.InHand == nil || fmt.Sprint(f.OfEvent()) != "[3 1]" || f.Basis.(*features.Derived).Event != nil {
		t.Errorf("share is in hand of %v, fields %v", f.InHand, f.OfEvent())
	}
}
