package features_test

import (
	"testing"

	"github.com/weir-stream/weir/internal/testkit/defined"
)

// The two terms of an average or a ratio count the same events, whatever definitions were before: both are kept from then
// on, or both were. Else events that were dead letters for one of them could be in the other.
func TestTermsOfQuotientsAreKeptTogether(t *testing.T) {
	const amount, required = "amount: decimal", "amount: {type: decimal, required: true}"
	definitions := func(fields, features string) string {
		return "streams:\n  tx: {topic: transactions, timestamp: ts, fields: {user: string, " + fields + "}}\nfeatures: {" + features + "}\n"
	}
	for _, c := range []struct{ name, fields, features, newFields, newFeatures string }{
		{"a field becomes required", amount, `n: "COUNT(lifetime, tx, user)", q: "AVG(lifetime, tx, amount, user)"`, required, `q: "AVG(lifetime, tx, amount, user)"`},
		{"a required field beside a count", "shop: string", `n: "COUNT(lifetime, tx, user)"`, required, `q: "AVG(lifetime, tx, amount, user)"`},
		{"another field becomes required", amount + ", shop: string", `s: "SUM(lifetime, tx, amount, user)"`,
			amount + ", shop: {type: string, required: true}", `q: "AVG(lifetime, tx, amount, user)"`},
		{"by categories", amount + ", shop: string", `s: "SUM(lifetime, tx, amount, user, per=shop)"`, amount + ", shop: string", `q: "AVG(lifetime, tx, amount, user, per=shop)"`},
		{"a ratio beside a count", amount, `n: "COUNT(lifetime, tx, user)"`, amount, `q: "RATIO(lifetime, tx, user, condition='amount > 50')"`},
		{"a ratio beside another", amount, `n: "RATIO(lifetime, tx, user, condition='amount > 5')"`, amount, `q: "RATIO(lifetime, tx, user, condition='amount > 50')"`},
		{"the condition's field is elsewhere", amount, `q: "RATIO(lifetime, tx, user, condition='amount > 50')"`,
			"amount: {type: decimal, path: a}", `q: "RATIO(lifetime, tx, user, condition='amount > 50')"`},
		{"the average's field is elsewhere", amount, `q: "AVG(lifetime, tx, amount, user)"`, "amount: {type: decimal, path: a}", `q: "AVG(lifetime, tx, amount, user)"`},
	} {
		before := defined.Registry(t, definitions(c.fields, c.features)).Plan()
		q := defined.Feature(t, defined.Registry(t, definitions(c.newFields, c.newFeatures)), "q")
		kept := 0
		for _, r := range q.Retained() {
			if _, had := before.Retained[r.Key]; had {
				kept++
			}
		}
		if n := len(q.Retained()); n != 2 || kept != 0 && kept != n {
			t.Errorf("%s: %d of %d terms were kept before", c.name, kept, n)
		}
	}
}
