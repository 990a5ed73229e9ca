package redisstore

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Three plans over two series that count a device's events in tiles of 1 ms.
var (
	seriesA = &state.Series{ID: "aaaaa", Group: "devi", By: []string{"device"}, Measure: state.CountEvents, Tile: 1, Keep: 8 * day, GroupKeep: 9 * day}
	seriesB = &state.Series{ID: "bbbbb", Group: "devi", By: []string{"device"}, Measure: state.CountEvents, Tile: 1, Keep: 8 * day, GroupKeep: 9 * day}
	plans   = map[string][]*state.Series{"onlyA": {seriesA}, "both": {seriesA, seriesB}, "onlyB": {seriesB}}
)

func planOf(version string) *state.Plan {
	p := &state.Plan{Version: version, Retained: map[string]state.Retention{}}
	for _, s := range plans[version] {
		p.Retained[s.ID+".x"] = state.Retention{Keep: s.Keep}
	}
	return p
}

const future = 50

func unitOf(s *state.Series) state.Retained {
	return state.Retained{Key: s.ID + ".x", Topic: "transactions", Retention: state.Retention{Keep: s.Keep}, Future: future, Tile: 1}
}

// loggedRecord is an event in a partition's log; its offset is its place.
type loggedRecord struct {
	device          string
	time, timestamp int64
}

// applying is one owner of a partition with its plan, who may long have lost it.
type applying struct {
	version  string
	p        state.Partition
	writer   *writer
	progress []state.Position
	position int64
	newest   int64 // timestamp of a record met since it began
}

// histories is a topic with processors that come, go, hang and come back with
// whatever definitions.
type histories struct {
	t      *testing.T
	s      *Store
	random *rand.Rand
	logs   map[state.Partition][]loggedRecord
	owners []*applying
	told   map[string]int // what the history said of the series, by kind of answer
}

func (h *histories) claim(p state.Partition, version string) *applying {
	ctx := context.Background()
	if _, err := h.s.Place(ctx, state.Begin(p.WithPlan(version), h.s.Shards(), 0)); err != nil {
		h.t.Fatal(err)
	}
	claims, err := h.s.Claim(ctx, []state.Partition{p}, version)
	if err != nil {
		h.t.Fatal(err)
	}
	return &applying{version: version, p: p, writer: h.s.newWriter(), progress: claims[0].Progress, position: state.Lowest(claims[0].Progress)}
}

// apply applies the next records as the owner knows its partition; it may be
// told that it has lost it, and gives up then.
func (h *histories) apply(o *applying, n int) bool {
	log := h.logs[o.p]
	to := min(o.position+int64(n), int64(len(log)))
	b := &state.Batch{Ranges: []state.PartitionRange{{Partition: o.p.WithPlan(o.version), To: to, Progress: o.progress}}, EveryShard: h.random.IntN(3) == 0}
	for offset := o.position; offset < to; offset++ {
		r := log[offset]
		o.newest = max(o.newest, r.timestamp)
		b.Update(0, offset, []byte(r.device))
		for _, s := range plans[o.version] {
			b.Add(state.Mutation{Series: s, Tile: r.time, Num: 1})
		}
	}
	b.Now = o.newest
	if err := o.writer.Apply(context.Background(), b); err != nil {
		h.t.Fatal(err)
	}
	o.position = to
	return !b.Ranges[0].Behind
}

// check holds what state holds since it says to be complete against the logs.
func (h *histories) check() {
	h.t.Helper()
	ctx := context.Background()
	var parts []state.Partition
	for p := range h.logs {
		parts = append(parts, p)
	}
	var reads []state.Read
	for _, series := range []*state.Series{seriesA, seriesB} {
		for d := range devices {
			reads = append(reads, state.Read{Series: series, Entity: device(d), First: 0, Last: day})
		}
	}
	stored, err := h.s.Read(ctx, reads)
	if err != nil {
		h.t.Fatal(err)
	}
	progress, err := h.s.Progress(ctx, parts)
	if err != nil {
		h.t.Fatal(err)
	}
	history, err := h.s.History(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	for i, read := range reads {
		since := history.CompleteSince([]state.Retained{unitOf(read.Series)})
		switch since {
		case state.MaxTime:
			h.told["not yet"]++
			continue
		case state.MinTime:
			h.told["ever"]++
		default:
			h.told["since"]++
		}
		want, got := 0, 0
		shard := state.Shard(state.EntityHash([]byte(read.Entity)), h.s.Shards())
		for n, p := range parts {
			for _, r := range h.logs[p][:max(0, progress[n][shard].Offset)] {
				if r.device == read.Entity && r.time >= since {
					want++
				}
			}
		}
		for _, c := range stored[i].Buckets {
			if c.Tile >= since {
				got += int(c.Value.Num)
			}
		}
		if got != want {
			h.t.Fatalf("%s of %s holds %d events since %d, of %d: %+v", read.Series.ID, read.Entity, got, since, want, history.PlanEpochs)
		}
	}
}

const devices = 6

func device(n int) string { return fmt.Sprintf("d%d", n) }

// Whatever processors do with whatever plans, one that hangs and wakes up
// included, state holds all events since it says so.
func TestStateIsAsCompleteAsItSays(t *testing.T) {
	onEach(t, 4, func(t *testing.T, s *Store) {
		told := map[string]int{}
		for seed := range uint64(testkit.Trials(6)) {
			random := rand.New(rand.NewPCG(seed, 1))
			one := newStore(t, s.redis, 4)
			one.namespace = s.namespace // plans are those of all
			h := &histories{t: t, s: one, random: random, logs: map[state.Partition][]loggedRecord{}, told: told}
			for id := range int32(2) {
				h.logs[state.Partition{Topic: "transactions", ID: id}] = nil
			}
			for version := range plans {
				if _, err := one.Register(context.Background(), state.Registration{Plan: planOf(version)}); err != nil {
					t.Fatal(err)
				}
			}
			h.run(150)
		}
		for _, answer := range []string{"not yet", "since", "ever"} {
			if told[answer] == 0 {
				t.Errorf("the history never said %s: %v", answer, told)
			}
		}
	})
}

func (h *histories) run(steps int) {
	versions := []string{"both", "onlyA", "onlyB"}
	clock := int64(2000)
	for step := range steps {
		p := state.Partition{Topic: "transactions", ID: h.random.Int32N(2)}
		for range h.random.IntN(8) {
			clock += h.random.Int64N(20)
			stamp := clock - h.random.Int64N(400)
			h.logs[p] = append(h.logs[p], loggedRecord{device(h.random.IntN(devices)), stamp + future - h.random.Int64N(20), stamp})
		}
		if len(h.owners) == 0 || h.random.IntN(6) == 0 {
			version := "both"
			if h.random.IntN(2) == 0 && step > 20 {
				version = versions[h.random.IntN(3)]
			}
			h.owners = append(h.owners, h.claim(p, version))
		}
		i := h.random.IntN(len(h.owners))
		if !h.apply(h.owners[i], h.random.IntN(10)) {
			h.owners = slices.Delete(h.owners, i, i+1)
		}
		h.check()
	}
	// In the end all have one plan, and everything is applied.
	for p := range h.logs {
		if o := h.claim(p, "both"); !h.apply(o, len(h.logs[p])) {
			h.t.Fatal("the present owner has lost its partition")
		}
	}
	h.check()
	history, err := h.s.History(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	if since := history.CompleteSince([]state.Retained{unitOf(seriesA), unitOf(seriesB)}); since > clock+future+1 {
		h.t.Errorf("complete since %d, after all that is in the log", since)
	}
}

func TestClaims(t *testing.T) {
	ctx := context.Background()
	onEach(t, 2, func(t *testing.T, s *Store) {
		claim := func(version string, want ...state.Position) int64 {
			t.Helper()
			claims, err := s.Claim(ctx, []state.Partition{transactions}, version)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, claims[0].Progress); diff != "" {
				t.Errorf("claimed by %s: %s", version, diff)
			}
			return claims[0].Held
		}
		marks := func(want ...state.PlanEpoch) {
			t.Helper()
			h, err := s.History(ctx)
			if err != nil {
				t.Fatal(err)
			}
			sorted := cmpopts.SortSlices(func(a, b state.PlanEpoch) bool { return a.Topic+a.Version < b.Topic+b.Version })
			if diff := cmp.Diff(want, h.PlanEpochs, sorted, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		}
		mark := func(version string, last int64) state.PlanEpoch {
			return state.PlanEpoch{Topic: "transactions", Version: version, Last: last}
		}

		if held := claim("one", state.NoPosition, state.NoPosition); held != math.MaxInt64 {
			t.Errorf("nobody has had the partition, for %d ms", held)
		}
		marks()
		if n, err := s.Place(ctx, state.Begin(transactions.WithPlan("one"), 2, 7)); err != nil || n != 2 {
			t.Fatal(n, err)
		}
		if n, err := s.Place(ctx, state.Begin(transactions.WithPlan("two"), 2, 9)); err != nil || n != 0 { // too late
			t.Fatal(n, err)
		}
		seven, ten := state.Position{Offset: 7, Epoch: -1}, state.Position{Offset: 10, Epoch: 3}
		if held := claim("one", seven, seven); held > 60_000 {
			t.Errorf("held for %d ms at once", held)
		}
		marks(mark("one", state.MaxTime))

		b := &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions.WithPlan("one"), To: 10, Epoch: 3, Progress: []state.Position{seven, seven}}}, EveryShard: true, Now: 5000}
		if err := s.newWriter().Apply(ctx, b); err != nil || b.Ranges[0].Behind {
			t.Fatal(err, b.Ranges[0])
		}
		if held := claim("two", ten, ten); held != 0 {
			t.Errorf("held for %d ms when it was taken", held)
		}
		marks(mark("one", 5000), mark("two", state.MaxTime))
		late := &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions.WithPlan("one"), To: 12, Epoch: 3, Progress: []state.Position{ten, ten}}}, EveryShard: true, Now: 6000}
		if err := s.newWriter().Apply(ctx, late); err != nil || !late.Ranges[0].Behind {
			t.Errorf("a batch of a plan that has lost the partition was applied: %v", err)
		}
		progress, err := s.Progress(ctx, []state.Partition{transactions})
		if err != nil || !slices.Equal(progress[0], []state.Position{ten, ten}) {
			t.Errorf("progress %v, %v", progress, err)
		}

		// A gap is marked with the placement, as of the newest record at least.
		place := func(from, to state.Position, gap int64) {
			t.Helper()
			p := state.Placement{Partition: transactions.WithPlan("one"), From: []state.Position{from, from}, To: []state.Position{to, to}, Gap: gap}
			if n, err := s.Place(ctx, p); err != nil || n != 2 {
				t.Fatal(n, err)
			}
		}
		place(ten, seven, 4000)
		marks(mark(state.Gap, 5000), mark("one", 5000), mark("two", state.MaxTime))
		place(seven, ten, 8000)
		marks(mark(state.Gap, 8000), mark("one", 5000), mark("two", state.MaxTime))
		claim("two", ten, ten)
	})
}

// Of very many plans the earliest are forgotten, as if none had been applied.
func TestManyPlans(t *testing.T) {
	ctx := context.Background()
	onEach(t, 1, func(t *testing.T, s *Store) {
		if _, err := s.Place(ctx, state.Begin(transactions.WithPlan("v0"), s.Shards(), 0)); err != nil {
			t.Fatal(err)
		}
		for n := range int64(70) {
			at := state.Position{Offset: n, Epoch: int32(min(n, 1) - 1)}
			b := &state.Batch{
				Ranges:     []state.PartitionRange{{Partition: transactions.WithPlan(fmt.Sprint("v", n)), To: n + 1, Progress: []state.Position{at}}},
				EveryShard: true, Now: 1000 + n,
			}
			if err := s.newWriter().Apply(ctx, b); err != nil || b.Ranges[0].Behind {
				t.Fatal(err, b.Ranges[0])
			}
			if _, err := s.Claim(ctx, []state.Partition{transactions}, fmt.Sprint("v", n+1)); err != nil {
				t.Fatal(err)
			}
		}
		h, err := s.History(ctx)
		if err != nil {
			t.Fatal(err)
		}
		gap := slices.IndexFunc(h.PlanEpochs, func(m state.PlanEpoch) bool { return m.Version == state.Gap })
		// 64 that are over, the present one and the gap, which 6 went into.
		if len(h.PlanEpochs) != 66 || gap < 0 || h.PlanEpochs[gap].Last != 1005 {
			t.Errorf("%d marks, %+v", len(h.PlanEpochs), h.PlanEpochs)
		}
	})
}

func TestSeriesUsed(t *testing.T) {
	ctx := context.Background()
	onEach(t, 1, func(t *testing.T, s *Store) {
		for version, at := range map[string]int64{"onlyA": 3000, "both": 2000} {
			for _, ms := range []int64{1000, at} {
				if _, err := s.Register(ctx, state.Registration{Plan: planOf(version), At: time.UnixMilli(ms)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		used, err := s.SeriesUsed(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]time.Time{"aaaaa": time.UnixMilli(3000), "bbbbb": time.UnixMilli(2000)}, used); diff != "" {
			t.Error(diff)
		}
		// What another has written there is told, and not guessed about.
		s.redis.HSet(ctx, plansKey(s.namespace), "bad", "{")
		s.redis.HSet(ctx, usedKey(s.namespace), "bad/", "1:1")
		if _, err := s.SeriesUsed(ctx); fmt.Sprint(err) != "read the plan bad: unexpected end of JSON input" {
			t.Errorf("error %v", err)
		}
		s.redis.HSet(ctx, plansKey(s.namespace), "bad", "{}")
		s.redis.HSet(ctx, usedKey(s.namespace), "bad/", "noon")
		if _, err := s.SeriesUsed(ctx); fmt.Sprint(err) != `plan bad was used at "noon", which is no moment` {
			t.Errorf("error %v", err)
		}
		s.redis.HSet(ctx, keyspace.ProgressKey(s.tags[0]), "transactions@bad", "noon")
		if _, err := s.History(ctx); fmt.Sprint(err) != `the mark transactions@bad is "noon", which is no moment` {
			t.Errorf("error %v", err)
		}
		s.redis.HSet(ctx, keyspace.ProgressKey(s.tags[0]), "transactions@bad/3", "noon")
		want := "claim 1 partitions: " + keyspace.ProgressKey(s.tags[0]) + `: "noon" is no position`
		if _, err := s.Claim(ctx, []state.Partition{transactions}, "bad"); fmt.Sprint(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

// A record that is dated years ahead does not keep features from being complete
// until then; and what an older version, or a clock that was wrong, has left
// behind is lowered by the next claim.
func TestTimestampsFarAheadAreNotBelieved(t *testing.T) {
	ctx := context.Background()
	onEach(t, 2, func(t *testing.T, s *Store) {
		const far, past = 4_000_000_000_000, 1_500_000_000_000
		marks := func() map[string]int64 {
			t.Helper()
			h, err := s.History(ctx)
			if err != nil {
				t.Fatal(err)
			}
			last := map[string]int64{}
			for _, m := range h.PlanEpochs {
				last[m.Topic+"@"+m.Version] = m.Last
			}
			return last
		}
		began := time.Now().UnixMilli()
		believed := func(what string, last int64) {
			t.Helper()
			ahead := state.MaxAhead.Milliseconds()
			if least, most := began+ahead-1000, time.Now().UnixMilli()+ahead+1000; last < least || last > most {
				t.Errorf("%s is %d, want a day ahead of the clock: %d to %d", what, last, least, most)
			}
		}
		if _, err := s.Place(ctx, state.Begin(transactions.WithPlan("one"), 2, 0)); err != nil {
			t.Fatal(err)
		}
		b := &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions.WithPlan("one"), To: 1, Progress: state.Begin(transactions, 2, 0).To}}, EveryShard: true, Now: far}
		if err := s.newWriter().Apply(ctx, b); err != nil || b.Ranges[0].Behind {
			t.Fatal(err, b.Ranges[0])
		}
		for shard, tag := range s.tags {
			now, err := s.redis.HGet(ctx, keyspace.ProgressKey(tag), keyspace.ClockField).Int64()
			if err != nil {
				t.Fatal(err)
			}
			believed(fmt.Sprint("the newest timestamp of shard ", shard), now)
		}
		if _, err := s.Claim(ctx, []state.Partition{transactions}, "two"); err != nil {
			t.Fatal(err)
		}
		believed("the mark of a plan that is over", marks()["transactions@one"])

		for _, tag := range s.tags {
			s.redis.HSet(ctx, keyspace.ProgressKey(tag), keyspace.ClockField, far, "transactions@one", far, "logins@!", far, "logins@old", past)
		}
		if _, err := s.Claim(ctx, []state.Partition{transactions}, "three"); err != nil {
			t.Fatal(err)
		}
		after := marks()
		for _, mark := range []string{"transactions@one", "transactions@two", "logins@!"} {
			believed("the mark "+mark, after[mark])
		}
		if after["logins@old"] != past {
			t.Errorf("a mark of the past was moved to %d", after["logins@old"])
		}
		if got := after["transactions@three"]; got != state.MaxTime {
			t.Errorf("the present plan is over since %d", got)
		}
	})
}
