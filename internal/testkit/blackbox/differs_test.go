package blackbox

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/testkit/defined"
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
