package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Series of which a batch combines mutations, each in its own way.
var (
	amounts  = &state.Series{ID: "sumsu", Group: "devic", By: []string{"device"}, Measure: state.Sum, Type: value.Int, Tile: day, Keep: 8 * day, GroupKeep: 9 * day}
	greatest = &state.Series{ID: "great", Group: "devic", By: []string{"device"}, Measure: state.Max, Type: value.Int, Tile: day, Keep: 8 * day, GroupKeep: 9 * day}
	members  = &state.Series{ID: "users", Group: "devic", By: []string{"device"}, Measure: state.Distinct, Type: value.String, Tile: day, Keep: 8 * day, GroupKeep: 9 * day}
)

// pair is two partitions that are applied together: each device has events of both.
type pair struct {
	*testing.T
	s    Namespace
	ends []int64 // of the partitions
}

// testInterruptions checks that a batch may be interrupted after any of its steps: another writer, with other batches,
// applies the rest, nothing is lost, and nothing counts twice.
func testInterruptions(t *testing.T, open Open) {
	ahead := 0
	for steps := 0; ; steps++ {
		random := rand.New(rand.NewPCG(uint64(steps), 5))
		p := &pair{t, open(2, 6), []int64{120, 80}}
		for _, of := range []state.Partition{transactions, beside} {
			if _, err := p.s.Place(t.Context(), testkit.FirstPlacement(of, 2, 0)); err != nil {
				t.Fatal(err)
			}
		}
		first, _ := p.batch(100, 60)
		p.s.Interrupt(steps)
		interrupted := p.s.NewWriter().Apply(t.Context(), first)
		p.s.Interrupt(-1)
		w := p.s.Another().NewWriter()
		for rest := true; rest; {
			var b *state.Batch
			if b, rest = p.batch(p.some(random, 0), p.some(random, 1)); !rest {
				break
			}
			for i := range b.Ranges {
				for _, at := range b.Ranges[i].Progress {
					if at.Slices > 0 {
						ahead++
					}
				}
			}
			if err := w.Apply(t.Context(), b); err != nil || b.Ranges[0].Behind || b.Ranges[1].Behind {
				t.Fatalf("%+v, error %v; want the batch applied", b.Ranges, err)
			}
		}
		p.expectAll()
		if t.Failed() {
			t.Fatalf("after an interruption after %d steps", steps)
		}
		if interrupted == nil {
			break // the batch has no more steps
		}
	}
	if ahead < 5 {
		t.Errorf("%d positions had slices ahead, want at least 5: the batches had too few steps", ahead)
	}
}

// some draws a number of records for the next batch of a partition: none, those up to the end of an interrupted batch, or any.
func (p *pair) some(random *rand.Rand, partition int) int64 {
	p.Helper()
	progress, err := p.s.Progress(p.Context(), []state.Partition{{Topic: transactions.Topic, ID: transactions.ID + int32(partition)}})
	if err != nil {
		p.Fatal(err)
	}
	switch random.IntN(3) {
	case 0:
		return 0
	case 1:
		for _, at := range progress[0] {
			if at.Slices > 0 {
				return at.Ahead - state.Lowest(progress[0])
			}
		}
	}
	return random.Int64N(40)
}

// batch returns the next records from the lowest progress of each partition, and whether any are left.
func (p *pair) batch(records ...int64) (b *state.Batch, rest bool) {
	p.Helper()
	partitions := []state.Partition{transactions, beside}
	progress, err := p.s.Progress(p.Context(), partitions)
	if err != nil {
		p.Fatal(err)
	}
	b = &state.Batch{EveryShard: true, Series: []*state.Series{events, amounts, greatest, members}}
	for i, of := range partitions {
		from := state.Lowest(progress[i])
		to := min(from+records[i], p.ends[i])
		rest = rest || from < p.ends[i]
		b.Ranges = append(b.Ranges, state.PartitionRange{Partition: of, To: to, Epoch: -1, Progress: progress[i]})
		for offset := from; offset < to; offset++ {
			b.Update(i, offset, manyAt(offset))
			b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
			b.Add(state.Mutation{Series: amounts, Tile: 100, Num: offset})
			b.Add(state.Mutation{Series: greatest, Tile: 100, Num: offset})
			b.Add(state.Mutation{Series: members, Tile: 100, Text: &state.Text{Member: fmt.Append(nil, offset)}})
		}
	}
	return b, rest
}

// manyAt returns the device of the record at an offset: one of many, in many slices.
func manyAt(offset int64) []byte { return fmt.Appendf(nil, "many%d", offset%40) }

// expectAll compares the state of each device with the records of both partitions.
func (p *pair) expectAll() {
	p.Helper()
	type result struct{ events, amounts, greatest, members int64 }
	want, seen := map[string]result{}, map[string]bool{}
	for _, end := range p.ends {
		for offset := range end {
			device := string(manyAt(offset))
			of := want[device]
			of.events, of.amounts, of.greatest = of.events+1, of.amounts+offset, max(of.greatest, offset)
			if member := fmt.Sprint(device, offset); !seen[member] {
				seen[member] = true
				of.members++
			}
			want[device] = of
		}
	}
	got := map[string]result{}
	for device := range want {
		var reads []state.Read
		for _, s := range []*state.Series{events, amounts, greatest, members} {
			reads = append(reads, state.Read{Series: s, Entity: device, First: 100, Last: 100})
		}
		found, err := p.s.Read(p.Context(), reads)
		if err != nil {
			p.Fatal(err)
		}
		var of result
		for i, into := range []*int64{&of.events, &of.amounts, &of.greatest} {
			for _, b := range found[i].Buckets {
				*into += b.Value.Num
			}
		}
		of.members = int64(len(found[3].Members))
		got[device] = of
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		p.Errorf("the devices differ (-want +got):\n%s", diff)
	}
}
