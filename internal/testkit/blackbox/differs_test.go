package blackbox

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

const estimates = `
streams: {pay: {topic: payments, timestamp: at, fields: {user: string, shop: string}}}
features:
  exact: COUNT(1d, pay, user)
  estimated: COUNT_DISTINCT(1d, pay, user, shop, method=hll)
`

// An estimate of few values may be off by some that share a register, an estimate of many by five
// standard errors; a count must be exact.
func TestDiffersInEstimates(t *testing.T) {
	registry := defined.Registry(t, estimates)
	for _, test := range []struct {
		feature   string
		got, want int64
		differs   bool
	}{
		{"exact", 17, 17, false}, {"exact", 16, 17, true},
		{"estimated", 0, 0, false}, {"estimated", 16, 17, false}, {"estimated", 13, 17, true},
		{"estimated", 9_700, 10_000, false}, {"estimated", 9_000, 10_000, true},
	} {
		for _, f := range registry.Features {
			if f.Name != test.feature {
				continue
			}
			want := aggregate.Result{Value: value.Value{Type: value.Int, Num: test.want}, Found: test.want > 0}
			got := Answer{Value: json.RawMessage(fmt.Sprint(test.got)), Status: statusOf(want), Exact: f.Function.Spec().Exact}
			if difference := Differs(got, f, want); (difference != "") != test.differs {
				t.Errorf("%+v: got the difference %q", test, difference)
			}
		}
	}
}

// Floats whose squares are too small for floats differ, although their deviation is 0: an answer that is not exact is right, also
// of a feature that is derived from it.
func TestDiffersInTinyDeviations(t *testing.T) {
	registry := defined.Registry(t, `
streams: {pay: {topic: payments, timestamp: at, fields: {user: string, score: float}}}
features:
  spread: STDDEV_POP(1d, pay, score, user)
  twice: {expr: spread * 2}
`)
	m := model.New(registry)
	for i, score := range []float64{0, math.SmallestNonzeroFloat64} {
		at := int64(1_700_000_000_000 + i)
		text := fmt.Sprintf(`{"at": %d, "user": "u", "score": %g}`, at, score)
		if err := m.Apply(record.Record{Partition: state.Partition{Topic: "payments"}, Offset: int64(i), Timestamp: at, Value: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range registry.Features {
		want := m.Answer(f, "u", 1_700_000_000_010)
		got := Answer{Value: json.RawMessage("0"), Status: statusOf(want)}
		if difference := Differs(got, f, want); difference != "" {
			t.Errorf("%s: %s", f.Name, difference)
		}
		if got.Exact = true; Differs(got, f, want) == "" {
			t.Errorf("%s: an exact answer is taken for right", f.Name)
		}
	}
}
