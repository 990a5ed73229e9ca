package recovery

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
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

// begin has the shards begin in the log of a leader.
func (r *truncation) begin(leader int32) []state.Position { return r.take(leader, nil) }

// place has the shards continue in a log that diverges from theirs at an offset.
func (r *truncation) place(epoch int32, at int64, leader int32) []state.Position {
	return r.take(leader, map[int32]fetch.EpochEnd{epoch: {Epoch: epoch, Offset: at}})
}

func (r *truncation) take(leader int32, ends map[int32]fetch.EpochEnd) []state.Position {
	r.Helper()
	progress, err := r.store.Progress(r.Context(), []state.Partition{r.partition})
	if err != nil {
		r.Fatal(err)
	}
	f := finding{
		partition: r.partition.Itself(), underPlan: r.partition, claim: state.Claim{Progress: progress[0]},
		log: fetch.Log{Partitions: 1, LeaderEpoch: leader, Stable: 200, End: 200}, ends: ends,
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

func newTruncation(t *testing.T) *truncation {
	r := &truncation{T: t, registry: defined.Registry(t, truncatedDefinitions), store: plain.New(2)}
	r.partition = state.Partition{Topic: "tx"}.WithPlan(r.registry.Plan().Version)
	return r
}

// A request that was read from the log before it was truncated is not applied after that, though a shard is where it begins: it was
// applied and its reply was lost, or its process had been halted before it sent it. Nor is one from the start of the log.
func TestRequestsOfBeforeATruncation(t *testing.T) {
	for name, test := range map[string]struct {
		from    int64
		applied bool
		want    string
	}{
		"whose reply was lost":            {4, true, "11112211"},
		"that was not sent":               {4, false, "11111100"},
		"the first, whose reply was lost": {0, true, "22111111"},
		"the first, that was not sent":    {0, false, "11000000"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTruncation(t)
			begun := r.begin(0)
			if test.from > 0 {
				begun, _ = r.apply(r.batch(0, test.from, 0, begun))
			}
			late := r.batch(test.from, 8, 0, begun)
			if test.applied {
				if _, refused := r.apply(r.batch(test.from, 8, 0, begun)); refused {
					t.Fatal("it is refused before the truncation")
				}
			}
			placed := r.place(0, test.from, 1)
			if _, refused := r.apply(late); !refused {
				t.Error("it is applied after the truncation")
			}
			if _, refused := r.apply(r.batch(test.from, test.from+2, 1, placed)); refused {
				t.Error("the new records are refused")
			}
			if got := r.counted(8); got != test.want {
				t.Errorf("the records count %s times, want %s", got, test.want)
			}
		})
	}
}

// A process that follows a new leader by itself finds that another one has applied what the log no longer has: its records are not
// taken for applied.
func TestNewLeaderOfAPartitionThatIsRead(t *testing.T) {
	for _, until := range []int64{5, 8} {
		r := newTruncation(t)
		begun, _ := r.apply(r.batch(0, 4, 0, r.begin(0)))
		if _, refused := r.apply(r.batch(4, until, 0, begun)); refused {
			t.Fatal("the other process is refused")
		}
		if _, refused := r.apply(r.batch(4, 7, 1, begun)); !refused {
			t.Error("records of the new leader are taken for those that were applied")
		}
		if _, refused := r.apply(r.batch(4, 7, 1, r.place(0, 4, 1))); refused {
			t.Error("the new records are refused")
		}
		if got, want := r.counted(8), map[int64]string{5: "11112110", 8: "11112221"}[until]; got != want {
			t.Errorf("the records count %s times, want %s", got, want)
		}
	}
}
