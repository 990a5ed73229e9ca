package query

import (
	"context"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// oneRow is a table with the same row for each key.
type oneRow struct{ row features.Row }

func (r *oneRow) Find(*features.Table, string, int64) (*features.Row, error) { return &r.row, nil }

// readBefore answers a question with the state that was read for it before.
type readBefore struct{ states []state.WindowState }

func (r *readBefore) Read(context.Context, []state.Read) ([]state.WindowState, error) {
	return r.states, nil
}

// shippedInHand are the shipped features that read the event in hand. Of some features asking returns what answers them again and
// again, with an event, from state that was read before.
func shippedInHand(t testing.TB) (all []*features.Feature, asking func([]*features.Feature) func()) {
	registry, err := definition.Load("../../config/features")
	if err != nil {
		t.Fatal(err)
	}
	const at = 1_700_000_000_000
	stored, mapper := memory.New(), registry.NewMapper()
	see := func(text string) *record.Event {
		batch := state.Batch{Ranges: []state.PartitionRange{{}}, Now: at}
		out, err := mapper.Map(&record.Record{Partition: state.Partition{Topic: "transactions"}, Timestamp: at, Value: []byte(text)}, 0, &batch)
		if err == nil {
			err = stored.Apply(t.Context(), &batch)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out.Events[0].Clone()
	}
	see(`{"type":"transaction","timestamp":1699800000000,"user_id":"u1","merchant_id":"m1","amount":10}`)
	event := see(`{"type":"transaction","timestamp":1700000000000,"user_id":"u1","merchant_id":"m1","amount":25.5}`)
	merchant, _ := registry.Table("merchant")
	row := &oneRow{features.Row{Time: at, Values: make([]value.Value, len(merchant.Rows.Fields))}}
	row.row.Values[merchant.Rows.FieldIndex("limit")] = value.Value{Type: value.Decimal, Scale: 2, Num: 2000}
	for _, f := range registry.Features {
		if f.InHand != nil {
			all = append(all, f)
		}
	}
	entities := map[string]string{"user_id": "u1", "merchant_id": "m1"}
	return all, func(asked []*features.Feature) func() {
		var r Reading
		want := func() {
			r.Reset(at)
			r.SetTables(row)
			r.SetInHand(event)
			for _, f := range asked {
				r.Want(f, entities[f.By[0]], at)
			}
		}
		want()
		if err := r.Read(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		read, ctx := readBefore{r.WindowStates()}, t.Context()
		var a Answer
		return func() {
			want()
			if err := r.Read(ctx, &read); err != nil {
				t.Fatal(err)
			}
			for range asked {
				if r.Next(&a); a.Status != Present || a.Value.IsNull() {
					t.Fatalf("%+v", a)
				}
			}
		}
	}
}

func TestEventInHandAllocatesNothing(t *testing.T) {
	all, asking := shippedInHand(t)
	if len(all) < 3 {
		t.Fatalf("%d features read the event in hand", len(all))
	}
	for _, f := range all {
		if n := testing.AllocsPerRun(100, asking([]*features.Feature{f})); n > 0 {
			t.Errorf("%s: %v allocations", f.Name, n)
		}
	}
}

// BenchmarkEventInHand answers the shipped features that read the event in hand, and their parts alone: the difference is what an
// expression over the event costs.
func BenchmarkEventInHand(b *testing.B) {
	all, asking := shippedInHand(b)
	for _, f := range all {
		for name, asked := range map[string][]*features.Feature{"": {f}, "/its parts": f.Parts()} {
			b.Run(f.Name+name, func(b *testing.B) {
				answer := asking(asked)
				b.ReportAllocs()
				for b.Loop() {
					answer()
				}
			})
		}
	}
}
