package query

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

// With a million distinct values over many tiles, every quantile lies within the error that the
// answer states, and the state stays small.
func TestQuantilesOfAMillionValues(t *testing.T) {
	const values, prime = 1_000_000, 1_000_003
	var definitions []string
	for p := 0; p <= 20; p++ {
		definitions = append(definitions, fmt.Sprintf("p%d: QUANTILE(1h, tx, amount, user, p=%v)", p, float64(p)/20))
	}
	definitions = append(definitions, "coarse: QUANTILE(1h, tx, amount, user, p=0.5, error=0.02)", "rate: QUANTILE(1h, tx, rate, user, p=0.45)")
	r := defined.Registry(t, `
streams:
  tx: {topic: tx, timestamp: ts, fields: {user: string, amount: {type: decimal, scale: 2}, rate: float}}
features:
  `+strings.Join(definitions, "\n  "))
	held, mapper := memory.New(), r.NewMapper()
	b := &state.Batch{}
	rec := record.Record{Partition: state.Partition{Topic: "tx"}, Timestamp: record.NoTime}
	const start = int64(1_700_002_800_000)
	n := int64(1)
	for i := range int64(prime - 1) {
		// This takes all residues but 0, each once, in a scattered order.
		if n = n * 5 % prime; n <= values {
			rec.Offset = i
			rec.Value = fmt.Appendf(rec.Value[:0], `{"ts":%d,"user":"u","amount":%d.%02d,"rate":%g}`,
				start+i*3, n/100, n%100, float64(n-values/2)*1e-6)
			if _, err := mapper.Map(&rec, 0, b); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.Mutations) > 10_000 {
			if err := held.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
	}
	if err := held.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Features {
		at := start + 3*values
		var reading Reading
		reading.Reset(at)
		reading.Want(f, "u", at)
		if err := reading.Read(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		var a Answer
		reading.Next(&a)
		nth := max(1, math.Ceil(f.Call.P*values-1e-6))
		want := nth / 100
		if f.Name == "rate" {
			want = (nth - values/2) * 1e-6
		}
		if off := math.Abs(a.Value.Float64() - want); off > f.Call.Error*math.Abs(want) || a.RelativeError != f.Call.Error || a.Exact {
			t.Errorf("%s: %v with relative error %v, want about %v", f.Definition, a.Value.Float64(), a.RelativeError, want)
		}
		if keys := len(reading.states[0].Groups); keys > 20_000 || reading.states[0].Capped {
			t.Errorf("%s has %d bins, capped %v; want at most 20,000, and all", f.Definition, keys, reading.states[0].Capped)
		}
	}
	if n := len(r.Series); n != 3 {
		t.Errorf("%d series, want 3: one for each error and field", n)
	}
}
