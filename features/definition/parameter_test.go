package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

func TestParametersAreCanonical(t *testing.T) {
	for definition, want := range map[string]string{
		`last_k(7d, tx, device, user, k=05, tile=exact)`:                                      `LAST_K(7d, tx, device, user, k=5)`,
		`SET(7d, tx, user, device, tile=exact)`:                                               `SET(7d, tx, user, device, tile=exact)`,
		`COUNT(7d, tx, by=user)`:                                                              `COUNT(7d, tx, user)`,
		`COUNT_DISTINCT(7d, tx, by=[device, amount], field=user)`:                             `COUNT_DISTINCT(7d, tx, device, amount, user)`,
		`COUNT_DISTINCT(7d, tx, user, by=device)`:                                             `COUNT_DISTINCT(7d, tx, device, user)`,
		`COUNT_DISTINCT(7d, tx, device, field=user)`:                                          `COUNT_DISTINCT(7d, tx, device, user)`,
		`SET(7d, tx, by=device, field=user)`:                                                  `SET(7d, tx, device, user)`,
		`SET(7d, tx, user, by=device)`:                                                        `SET(7d, tx, device, user)`,
		`COUNT(7d, tx, by=SET(30d, tx, device, user))`:                                        `COUNT(7d, tx, SET(30d, tx, device, user))`,
		`ACTIVE(lifetime, tx, user)`:                                                          `ACTIVE(lifetime, tx, user)`,
		`QUANTILE(7d, tx, amount, user, p=1, error=1e-2)`:                                     `QUANTILE(7d, tx, amount, user, p=1)`,
		`QUANTILE(7d, tx, amount, user, p=1, error=0.050)`:                                    `QUANTILE(7d, tx, amount, user, p=1, error=0.05)`,
		`SUM(7d, tx, amount, user, per=device, max=100)`:                                      `SUM(7d, tx, amount, user, per=device)`,
		`sum(7d, tx, amount, user, max=9, per=device)`:                                        `SUM(7d, tx, amount, user, per=device, max=9)`,
		`MODE(7d, tx, amount, user, per=device)`:                                              `MODE(7d, tx, amount, user, per=device)`,
		`SUM(7d, tx, amount, user, per=device, tile=exact)`:                                   `SUM(7d, tx, amount, user, tile=exact, per=device)`,
		`LAG(7d, tx, device, user, n=1)`:                                                      `LAG(7d, tx, device, user)`,
		`ACTIVE(7d, tx, user, unit=60m)`:                                                      `ACTIVE(7d, tx, user, unit=1h)`,
		`ACTIVE(7d, tx, user, unit=60s)`:                                                      `ACTIVE(7d, tx, user)`,
		`QUANTILE(7d, tx, amount, user, p=95e-2)`:                                             `QUANTILE(7d, tx, amount, user, p=0.95)`,
		`HISTOGRAM(7d, tx, amount, user, bins=[ 1.50,2e1 ])`:                                  `HISTOGRAM(7d, tx, amount, user, bins=[1.5, 20])`,
		`RATIO(7d, tx, user, condition='(ok)', where="ok")`:                                   `RATIO(7d, tx, user, condition='ok', where='ok')`,
		`SEEN(7d, tx, user, device, fp=1e-2, max=1000)`:                                       `SEEN(7d, tx, user, device)`,
		`seen(1d, tx, user, device, fp=0.00001, max=20)`:                                      `SEEN(1d, tx, user, device, fp=0.00001, max=20)`,
		`MIN(7d, tx, device, user, tile=exact, bounds='[)')`:                                  `MIN(7d, tx, device, user, tile=exact, bounds='[)')`,
		`EXP_DECAY_SUM(LIFETIME, tx, amount, user, half_life=24h, max=9, keep=1h)`:            `EXP_DECAY_SUM(lifetime, tx, amount, user, half_life=1d, max=9)`,
		`{function: histogram, stream: tx, field: fee, by: user, window: 1d, bins: [1, 2.5]}`: `HISTOGRAM(1d, tx, fee, user, bins=[1, 2.5])`,
	} {
		if definition[0] != '{' {
			definition = ">-\n    " + definition
		}
		r := load(t, "f: "+definition)
		if got := r.Features[0].Definition; got != want {
			t.Errorf("%s\n got %s\nwant %s", definition, got, want)
		}
		checkRoundTrip(t, r)
	}
}

func TestParametersOfTheCall(t *testing.T) {
	r := load(t, `a: HISTOGRAM(7d, tx, amount, user, bins=[1, 2.5], tile=exact)`, `b: LAG(7d, tx, amount, user, n=3)`,
		`c: QUANTILE(7d, tx, amount, user, p=0.25, tile=exact)`, `d: EXP_DECAY_SUM(7d, tx, amount, user, half_life=1h)`)
	money := func(cents int64) value.Value { return value.Value{Type: value.Decimal, Num: cents, Scale: 2} }
	base := aggregate.Call{Type: value.Decimal, Scale: 2, Max: features.DefaultLogMax}
	bins, lag, share, decay := base, base, base, base
	bins.Bins, lag.N, share.P, decay.Duration = []value.Value{money(100), money(250)}, 3, 0.25, 3_600_000
	share.Error = 0.01
	for i, want := range []aggregate.Call{bins, lag, share, decay} {
		if diff := cmp.Diff(want, r.Features[i].Call, cmpopts.EquateComparable(state.Secret{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Features[i].Definition, diff)
		}
	}
}

// The log keeps only what some feature counts: a filter selects events, a condition does not. One
// expression may be both, for two features.
func TestConditionIsNoFilter(t *testing.T) {
	ratio := `ratio: RATIO(7d, tx, user, condition='fee > 1', where='ok', tile=exact)`
	for _, test := range []struct {
		definitions []string
		event       string
		kept        bool
	}{
		{[]string{ratio}, `"ok":true,"fee":0`, true},
		{[]string{ratio}, `"ok":false,"fee":2`, false},
		{[]string{ratio, `high: LAST(7d, tx, device, user, where='fee > 1', tile=exact)`}, `"ok":false,"fee":2`, true},
		{[]string{`high: LAST(7d, tx, device, user, where='fee > 1', tile=exact)`, ratio}, `"ok":false,"fee":0`, false},
	} {
		r := load(t, test.definitions...)
		b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
		rec := &record.Record{
			Partition: state.Partition{Topic: "transactions"}, Timestamp: 1_700_000_000_000,
			Value: []byte(`{"ts":1700000000000,"user":"u",` + test.event + `}`),
		}
		if _, err := r.NewMapper().Map(rec, 0, b); err != nil {
			t.Fatal(err)
		}
		if kept := len(b.Mutations) > 0; kept != test.kept {
			t.Errorf("%q, event %s: counted is %v, want %v", test.definitions, test.event, kept, test.kept)
		}
	}
}
