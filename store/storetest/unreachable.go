package storetest

import (
	"errors"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// unreachable is a namespace with a partition of many devices. Some of its shards hang at times.
type unreachable struct {
	*testing.T
	s      Parted
	writer store.Writer
	share  state.PartitionRange // as its batches share it
}

func newUnreachable(t *testing.T, s Parted) *unreachable {
	u := &unreachable{T: t, s: s, writer: s.NewWriter()}
	if _, err := s.Register(t.Context(), state.Registration{Plan: plan("v1")}); err != nil {
		t.Fatal(err)
	}
	u.share.Partition = transactions.WithPlan("v1")
	if _, err := s.Place(t.Context(), testkit.FirstPlacement(u.share.Partition, s.Shards(), 0)); err != nil {
		t.Fatal(err)
	}
	u.again()
	return u
}

// again reads where the partition is, as whoever reads it again does.
func (u *unreachable) again() {
	u.Helper()
	progress, err := u.s.Progress(u.Context(), []state.Partition{transactions})
	if err != nil {
		u.Fatal(err)
	}
	u.share.Progress, u.share.Lagging = progress[0], make([]bool, len(progress[0]))
}

// apply applies records up to an offset.
func (u *unreachable) apply(from, to int64) (r *state.PartitionRange) {
	u.Helper()
	b := &state.Batch{Now: 100 * day, Ranges: []state.PartitionRange{u.share}, EveryShard: to%80 == 0, Series: []*state.Series{events}}
	b.Ranges[0].To = to
	for offset := from; offset < to; offset++ {
		b.Update(0, offset, manyAt(offset))
		b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
	}
	if err := u.writer.Apply(u.Context(), b); err != nil {
		u.Fatal(err)
	}
	return &b.Ranges[0]
}

// shard returns the shard of a device.
func (u *unreachable) shard(device []byte) int {
	return u.s.ShardOf(&state.EntityUpdate{Entity: device, Hash: state.EntityHash(device)}, u.s.Shards())
}

// each reads every device, and hands over its shard, how many events it has, and the error.
func (u *unreachable) each(take func(device string, shard int, n int64, err error)) {
	u.Helper()
	var reads []state.Read
	for offset := range int64(40) {
		reads = append(reads, state.Read{Series: events, Entity: string(manyAt(offset)), First: 100, Last: 100})
	}
	found, err := u.s.Read(u.Context(), reads)
	if err != nil {
		u.Fatal(err)
	}
	for i := range found {
		n := int64(0)
		for _, b := range found[i].Buckets {
			n += b.Value.Num
		}
		take(reads[i].Entity, u.shard([]byte(reads[i].Entity)), n, found[i].Err)
	}
}

// testUnreachable checks that while some shards cannot be reached, the others go on, what needs the missing ones says so,
// and afterwards nothing is lost and nothing counts twice.
func testUnreachable(t *testing.T, open func(shards int) Parted) {
	const shards = 12
	t.Run("batches", func(t *testing.T) {
		u := newUnreachable(t, open(shards))
		u.apply(0, 40)
		hung, end := u.s.Hang()
		for from := int64(40); from < 160; from += 40 {
			r := u.apply(from, from+40)
			for shard, hangs := range hung {
				if r.Behind || r.Lags(shard) != hangs {
					t.Fatalf("shard %d lags: %v, behind: %v; want only those that hang to lag: %v", shard, r.Lags(shard), r.Behind, hung)
				}
			}
		}
		u.each(func(device string, shard int, n int64, err error) {
			if lost := hung[shard]; lost != errors.Is(err, state.ErrUnavailable) || !lost && (err != nil || n != 4) {
				t.Errorf("%s: %d events, error %v; want 4, or that they cannot be reached: %v", device, n, err, lost)
			}
			if alone, err := u.s.Read(t.Context(), []state.Read{{Series: events, Entity: device, First: 100, Last: 100}}); err != nil || errors.Is(alone[0].Err, state.ErrUnavailable) != hung[shard] {
				t.Errorf("%s alone: error %v; want it about this device only, %v", device, err, hung[shard])
			}
		})
		end()
		u.apply(160, 200) // those that lag do not take what comes next, which would leave a hole
		u.each(func(device string, shard int, n int64, err error) {
			// What was sent as the shards began to hang may have arrived.
			if hung[shard] && n > 2 || !hung[shard] && n != 5 || err != nil {
				t.Errorf("%s: %d events, error %v; want 5, or at most 2 in a shard that lags: %v", device, n, err, hung[shard])
			}
		})
		u.again()
		if lowest := state.Lowest(u.share.Progress); lowest > 80 {
			t.Errorf("the shards that lagged are at %d", lowest)
		}
		for from := state.Lowest(u.share.Progress); from < 200; from += 40 {
			u.apply(from, min(from+40, 200))
		}
		u.each(func(device string, _ int, n int64, err error) {
			if n != 5 || err != nil {
				t.Errorf("%s: %d events, error %v; want 5", device, n, err)
			}
		})
	})
	t.Run("claims", func(t *testing.T) {
		u := newUnreachable(t, open(shards))
		u.apply(0, 80)
		if _, err := u.s.Register(t.Context(), state.Registration{Plan: plan("v2")}); err != nil {
			t.Fatal(err)
		}
		hung, end := u.s.Hang()
		c := claim(t, u.s, transactions, "v2")
		for shard, at := range c.Progress {
			if missing := errors.Is(c.Misses(shard), state.ErrUnavailable); missing != hung[shard] || missing == at.Exists() {
				t.Errorf("shard %d is at %v, missing: %v; want it missing: %v", shard, at, c.Misses(shard), hung[shard])
			}
		}
		if state.Lowest(c.Known()) != 80 {
			t.Errorf("the shards that were claimed are at %v, want 80", c.Known())
		}
		end()
		c = claim(t, u.s, transactions, "v2")
		if c.Missing != nil || state.Lowest(c.Progress) != 80 || c.OwnedMs > 120_000 {
			t.Errorf("claimed %+v, want offset 80 in all shards, just taken", c)
		}
		if r := u.apply(80, 160); !r.Behind {
			t.Error("a batch of the plan before was applied")
		}
	})
	t.Run("questions", func(t *testing.T) {
		u := newUnreachable(t, open(shards))
		u.apply(0, 80)
		before, err := u.s.History(t.Context())
		if err != nil || before.Missing != nil {
			t.Fatalf("the history is %+v, error %v; want nothing missing", before, err)
		}
		if clock, err := u.s.Clock(t.Context()); err != nil || clock != 100*day {
			t.Fatalf("the clock is %d, error %v", clock, err)
		}
		hung, end := u.s.Hang()
		u.each(func(string, int, int64, error) {})
		for shard, hangs := range hung {
			if err := u.s.Available(t.Context(), shard); hangs != errors.Is(err, state.ErrUnavailable) || !hangs && err != nil {
				t.Errorf("shard %d is available: %v; want that it hangs: %v", shard, err, hangs)
			}
		}
		history, err := u.s.History(t.Context())
		if err != nil || len(history.PlanEpochs) != len(before.PlanEpochs) || history.Missing == nil {
			t.Fatalf("the history is %+v, error %v; want that of before, and what is missing", history, err)
		}
		if clock, err := u.s.Clock(t.Context()); err != nil || clock != 100*day {
			t.Errorf("the clock is %d, error %v; want that of before", clock, err)
		}
		u.each(func(device string, shard int, _ int64, _ error) {
			read := state.Read{Series: events, Entity: device}
			if missing := history.Missing(&read); errors.Is(missing, state.ErrUnavailable) != hung[shard] {
				t.Errorf("of %s the history is missing: %v; want it missing: %v", device, missing, hung[shard])
			}
			if applied, err := u.s.Applied(t.Context(), transactions, 1, []state.Read{read}); err != nil || applied == hung[shard] {
				t.Errorf("for %s a record is applied: %v, error %v; want it where that is known", device, applied, err)
			}
		})
		end()
		for shard := range hung {
			if err := u.s.Available(t.Context(), shard); err != nil {
				t.Errorf("shard %d is available: %v", shard, err)
			}
		}
		if after, err := u.s.History(t.Context()); err != nil || after.Missing != nil {
			t.Errorf("the history is %+v, error %v; want nothing missing", after, err)
		}
	})
	t.Run("what is about all shards", func(t *testing.T) {
		u := newUnreachable(t, open(shards))
		u.apply(0, 80)
		fill := &state.Fill{ID: "f", Columns: map[string][]string{transactions.Topic: {events.ID + ".x"}}}
		hung, end := u.s.Hang()
		reached := 0
		for _, hangs := range hung {
			if !hangs {
				reached++
			}
		}
		placed, err := u.s.Place(t.Context(), testkit.FirstPlacement(beside.WithPlan("v1"), shards, 7))
		if !errors.Is(err, state.ErrUnavailable) || placed != reached {
			t.Errorf("%d shards were placed, error %v; want %d, and that others cannot be reached", placed, err, reached)
		}
		_, progress := u.s.Progress(t.Context(), []state.Partition{transactions})
		_, fillings := u.s.Fillings(t.Context(), fill, []state.Partition{transactions})
		for what, err := range map[string]error{
			"progress": progress, "fillings": fillings,
			"a gap":               u.s.Gap(t.Context(), transactions, 1),
			"the start of a fill": u.s.StartFill(t.Context(), state.FillStart{Fill: fill, Partition: transactions}),
		} {
			if !errors.Is(err, state.ErrUnavailable) {
				t.Errorf("%s: got error %v, want that some shards cannot be reached", what, err)
			}
		}
		end()
		if c := claim(t, u.s, beside, "v1"); state.Highest(c.Progress) != 7 {
			t.Errorf("after that the partition is at %v, want it placed where that was possible", c.Progress)
		}
	})
	t.Run("histories", func(t *testing.T) {
		random := newHistories(t, open(4), 0)
		random.run(60)
	})
}
