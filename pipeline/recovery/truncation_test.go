package recovery

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/storetest/plain"
)

const truncatedDefinitions = `
streams: {tx: {topic: tx, timestamp: at, fields: {user: string}}}
features:
  all: COUNT(lifetime, tx, user)
`

// truncation is a store that applies a log, of which each record is a payment of another user.
type truncation struct {
	*testing.T
	registry  *features.Registry
	partition state.Partition
	store     store.Store
}

// batch returns the records from one offset up to another, of a leader epoch, for shards that are at some positions.
func (r *truncation) batch(from, to int64, epoch int32, progress []state.Position) *state.Batch {
	r.Helper()
	b := &state.Batch{Ranges: []state.PartitionRange{{Partition: r.partition, To: to, Epoch: epoch, Progress: slices.Clone(progress)}}, Now: to}
	mapper := r.registry.NewMapper()
	for offset := from; offset < to; offset++ {
		rec := record.Record{Partition: r.partition, Offset: offset, Timestamp: offset, Value: fmt.Appendf(nil, `{"at":%d,"user":"u%d"}`, offset, offset)}
		if _, err := mapper.Map(&rec, 0, b); err != nil {
			r.Fatal(err)
		}
	}
	return b
}

// apply applies a batch, and returns the positions that are known then, and whether it was refused.
func (r *truncation) apply(b *state.Batch) (progress []state.Position, refused bool) {
	r.Helper()
	if err := r.store.NewWriter().Apply(r.Context(), b); err != nil {
		r.Fatal(err)
	}
	return b.Ranges[0].Progress, b.Ranges[0].Behind
}

// place has the shards continue in a log that diverges from theirs at an offset.
func (r *truncation) place(epoch int32, at int64, leader int32) []state.Position {
	r.Helper()
	progress, err := r.store.Progress(r.Context(), []state.Partition{r.partition})
	if err != nil {
		r.Fatal(err)
	}
	f := finding{
		partition: r.partition.Itself(), underPlan: r.partition, claim: state.Claim{Progress: progress[0]},
		log: fetch.Log{Partitions: 1, LeaderEpoch: leader, Stable: 200, End: 200}, ends: map[int32]fetch.EpochEnd{epoch: {Epoch: epoch, Offset: at}},
	}
	v := f.judge(Rules{})
	if v.placement == nil {
		r.Fatalf("nothing is placed: %v", v.err)
	}
	if placed, err := r.store.Place(r.Context(), *v.placement); err != nil || placed == 0 {
		r.Fatalf("%d are placed, error %v", placed, err)
	}
	return v.placement.To
}

// counted returns how often each record was applied.
func (r *truncation) counted(most int64) (times string) {
	r.Helper()
	for offset := range most {
		states, err := r.store.Read(r.Context(), []state.Read{{Series: r.registry.Features[0].Series[0], Entity: fmt.Sprint("u", offset)}})
		if err != nil {
			r.Fatal(err)
		}
		n := states[0].Count
		for _, bucket := range states[0].Buckets {
			n += bucket.Value.Num
		}
		times += fmt.Sprint(n)
	}
	return times
}

// A request that was read from the log before it was truncated is not applied after that, though a shard is where it begins: it was
// applied and its reply was lost, or its process had been halted before it sent it.
func TestRequestsOfBeforeATruncation(t *testing.T) {
	for name, applied := range map[string]bool{"whose reply was lost": true, "that was not sent": false} {
		t.Run(name, func(t *testing.T) {
			r := &truncation{T: t, registry: defined.Registry(t, truncatedDefinitions), store: plain.New(2)}
			r.partition = state.Partition{Topic: "tx"}.WithPlan(r.registry.Plan().Version)
			first := testkit.FirstPlacement(r.partition, 2, 0)
			if _, err := r.store.Place(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			begun, _ := r.apply(r.batch(0, 4, 0, first.To))
			late, want := r.batch(4, 8, 0, begun), "11111100"
			if applied {
				want = "11112211"
				if _, refused := r.apply(r.batch(4, 8, 0, begun)); refused {
					t.Fatal("it is refused before the truncation")
				}
			}
			placed := r.place(0, 4, 1)
			if _, refused := r.apply(late); !refused {
				t.Error("it is applied after the truncation")
			}
			if _, refused := r.apply(r.batch(4, 6, 1, placed)); refused {
				t.Error("the new records are refused")
			}
			if got := r.counted(8); got != want {
				t.Errorf("the records count %s times, want %s", got, want)
			}
		})
	}
}
