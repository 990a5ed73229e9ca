package features

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// A million distinct values, over many tiles: every quantile lies within the
// error that the answer states, and the state stays small.
func TestQuantilesOfAMillionValues(t *testing.T) {
	const values, prime = 1_000_000, 1_000_003
	var definitions []string
	for p := 0; p <= 20; p++ {
		definitions = append(definitions, fmt.Sprintf("p%d: QUANTILE(1h, tx, amount, user, p=%v)", p, float64(p)/20))
	}
	definitions = append(definitions, "fine: QUANTILE(1h, tx, amount, user, p=0.5, error=0.001)", "rate: QUANTILE(1h, tx, rate, user, p=0.45)")
	r := parse(t, `
streams:
  tx: {topic: tx, timestamp: ts, fields: {user: string, amount: {type: decimal, scale: 2}, rate: float}}
features:
  `+strings.Join(definitions, "\n  "))
	tx, _ := r.Stream("tx")
	amount, rate := tx.FieldIndex("amount"), tx.FieldIndex("rate")
	held, mapper := memory.New(), r.NewMapper()
	plan := mapper.plans[tx]
	b := &state.Batch{}
	e := record.Event{Stream: tx, Values: make([]value.Value, len(tx.Fields))}
	e.Values[tx.FieldIndex("user")] = value.Value{Type: value.String, Str: []byte("u")}
	const start = int64(1_700_002_800_000)
	n := int64(1)
	for i := range int64(prime - 1) {
		// All residues but 0 come, each once, in no order.
		if n = n * 5 % prime; n <= values {
			e.Values[amount] = value.Value{Type: value.Decimal, Scale: 2, Num: n}
			e.Values[rate] = value.Value{Type: value.Float, Flt: float64(n-values/2) * 1e-6}
			e.Time = start + i*3
			e.Now = e.Time
			mapper.write(&e, plan, i, 0, b)
		}
		if len(b.Ops) > 10_000 {
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
		slices, err := held.Read(t.Context(), readsOf(nil, f, "u", at))
		if err != nil {
			t.Fatal(err)
		}
		var a Answer
		fromTiles(&a, f, slices, at, at)
		nth := max(1, math.Ceil(f.Call.P*values-1e-6))
		want := nth / 100
		if f.Name == "rate" {
			want = (nth - values/2) * 1e-6
		}
		if off := math.Abs(a.Value.Float64() - want); off > f.Call.Error*math.Abs(want) || a.RelativeError != f.Call.Error || a.Exact {
			t.Errorf("%s: %v with error %v, want %v", f.Definition, a.Value.Float64(), a.RelativeError, want)
		}
		if keys := len(slices[0].Groups); keys > 20_000 {
			t.Errorf("%s counts by %d bins", f.Definition, keys)
		}
	}
	if n := len(r.Series); n != 3 {
		t.Errorf("%d series, want one for the quantiles of each error and field", n)
	}
}
