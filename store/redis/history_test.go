package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
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

func retainedOf(s *state.Series) state.Retained {
	return state.Retained{Key: s.ID + ".x", Topic: "transactions", Retention: state.Retention{Keep: s.Keep}, Future: future, Tile: 1}
}

// loggedRecord is an event in a partition's log; its offset is its index.
type loggedRecord struct {
	device          string
	time, timestamp int64
}

// applying is one owner of a partition with its plan, which may have lost it long ago.
type applying struct {
	version  string
	p        state.Partition
	writer   *writer
	progress []state.Position
	position int64
	newest   int64 // greatest timestamp of a record since it began
}

// histories is a topic with processors that start, end, hang and continue with any definitions.
type histories struct {
	t        *testing.T
	s        *Store
	random   *rand.Rand
	logs     map[state.Partition][]loggedRecord
	owners   []*applying
	answered map[string]int // how often the history called a series incomplete, whole, or complete since a time
}

func (h *histories) claim(p state.Partition, version string) *applying {
	ctx := context.Background()
	if _, err := h.s.Place(ctx, testkit.FirstPlacement(p.WithPlan(version), h.s.Shards(), 0)); err != nil {
		h.t.Fatal(err)
	}
	claims, err := h.s.Claim(ctx, []state.Partition{p}, version)
	if err != nil {
		h.t.Fatal(err)
	}
	return &applying{version: version, p: p, writer: h.s.newWriter(), progress: claims[0].Progress, position: state.Lowest(claims[0].Progress)}
}

// apply applies the next records from the owner's knowledge of its partition. It gives up if the owner has lost the
// partition.
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

// check compares the state, from the time since which it is said to be complete, with the logs.
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
		since := history.CompleteSince([]state.Retained{retainedOf(read.Series)})
		switch since {
		case state.MaxTime:
			h.answered["incomplete"]++
			continue
		case state.MinTime:
			h.answered["whole"]++
		default:
			h.answered["since"]++
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
		for _, b := range stored[i].Buckets {
			if b.Tile >= since {
				got += int(b.Value.Num)
			}
		}
		if got != want {
			h.t.Fatalf("%s of %s holds %d events since %d, want %d; the history is %+v", read.Series.ID, read.Entity, got, since, want, history.PlanEpochs)
		}
	}
}

const devices = 6

func device(n int) string { return fmt.Sprintf("d%d", n) }

// State holds all events since the time that it states, under processors with random plans that hang and continue.
func TestStateIsCompleteSinceTheStatedTime(t *testing.T) {
	onEach(t, 4, func(t *testing.T, s *Store) {
		answered := map[string]int{}
		for seed := range uint64(testkit.Trials(6)) {
			random := rand.New(rand.NewPCG(seed, 1))
			one := newStore(t, s.redis, 4)
			one.namespace = s.namespace // all share the plans
			h := &histories{t: t, s: one, random: random, logs: map[state.Partition][]loggedRecord{}, answered: answered}
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
		for _, answer := range []string{"incomplete", "since", "whole"} {
			if answered[answer] == 0 {
				t.Errorf("no answer was %s, want at least one; the answers are %v", answer, answered)
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
	// Finally all processors have one plan, and everything is applied.
	for p := range h.logs {
		if o := h.claim(p, "both"); !h.apply(o, len(h.logs[p])) {
			h.t.Fatalf("applying all of %v as its last owner: the batch is behind, want it applied", p)
		}
	}
	h.check()
	history, err := h.s.History(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	if since := history.CompleteSince([]state.Retained{retainedOf(seriesA), retainedOf(seriesB)}); since > clock+future+1 {
		h.t.Errorf("once one plan has applied all records, features are complete since %d, want at most %d", since, clock+future+1)
	}
}
