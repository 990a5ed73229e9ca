package storetest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// Three series that count a device's events in tiles of 1 ms, and the plans that keep some of them. The first plan has no
// fill; the second one fills two series, a part of which the others keep.
var (
	seriesA  = &state.Series{ID: "aaaaa", Group: "devi", By: []string{"device"}, Measure: state.CountEvents, Tile: 1, Keep: 8 * day, GroupKeep: 9 * day}
	seriesB  = &state.Series{ID: "bbbbb", Group: "devi", By: []string{"device"}, Measure: state.CountEvents, Tile: 1, Keep: 8 * day, GroupKeep: 9 * day}
	seriesC  = &state.Series{ID: "ccccc", Group: "devi", By: []string{"device"}, Measure: state.CountEvents, Tile: 1, Keep: 8 * day, GroupKeep: 9 * day}
	versions = []string{"a", "abc", "ab", "bc"}
	kept     = map[string][]*state.Series{"a": {seriesA}, "abc": {seriesA, seriesB, seriesC}, "ab": {seriesA, seriesB}, "bc": {seriesB, seriesC}}
)

func retainedOf(s *state.Series) state.Retained {
	return state.Retained{Key: s.ID + ".x", Topic: transactions.Topic, Retention: state.Retention{Keep: s.Keep}, Tile: 1}
}

// loggedRecord is an event in the log of a partition; its offset is its index.
type loggedRecord struct {
	device          []byte
	time, timestamp int64
}

// historian is one owner of a partition with its plan. It may have lost the partition long ago.
type historian struct {
	version string
	share   state.PartitionRange
	writer  store.Writer
	at      int64
	newest  int64        // greatest timestamp of a record since it began
	last    *state.Batch // as it was sent last
}

// histories is a topic with processors that start, end, hang, repeat what they have sent, and go on, with any definitions,
// while shards go back to earlier moments, batches are interrupted, and what new plans lack is filled.
type histories struct {
	*testing.T
	s        Namespace
	seed     uint64
	random   *rand.Rand
	clock    int64
	logs     map[state.Partition][]loggedRecord
	owners   []*historian
	saved    []func()
	end      func()         // of shards that hang; nil if none does
	answered map[string]int // how often the history called a series incomplete, whole, filled, or complete since a time
}

func newHistories(t *testing.T, s Namespace, seed uint64) *histories {
	h := &histories{
		T: t, s: s, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), clock: 2000, saved: make([]func(), s.Shards()), answered: map[string]int{},
		logs: map[state.Partition][]loggedRecord{transactions: nil, beside: nil},
	}
	for _, version := range versions {
		if _, err := s.Register(t.Context(), state.Registration{Plan: planOf(version, kept[version]...)}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// TestHistories checks, in a number of trials, that whatever happens, in whatever order, each event counts once in each
// series, and state holds all events since the time that the history states. TestStore makes a few trials.
func TestHistories(t *testing.T, open Open, trials int) {
	answered := map[string]int{}
	for seed := range uint64(testkit.Trials(trials)) {
		h := newHistories(t, open(3, 3+int(seed%12)*4), seed)
		h.answered = answered
		h.run(120)
	}
	for _, answer := range []string{"incomplete", "since", "whole", "filled"} {
		if answered[answer] == 0 {
			t.Errorf("no answer was %s, want at least one; the answers are %v", answer, answered)
		}
	}
}

func (h *histories) run(steps int) {
	h.Helper()
	for range steps {
		h.step()
		if h.end == nil {
			h.check()
		}
	}
	// Finally all shards are there, all processors have one plan, and everything is applied and filled.
	if h.end != nil {
		h.end()
		h.end = nil
	}
	for p := range h.logs {
		o := h.claim(p, "abc", false)
		if !h.apply(o, len(h.logs[p]), -1) {
			h.Fatalf("seed %d: all of %v is not applied by its last owner: %+v", h.seed, p, o.share)
		}
	}
	for h.fill("abc", 1000) {
	}
	h.check()
	history, err := h.s.History(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	for _, series := range kept["abc"] {
		since := history.CompleteSince([]state.Retained{retainedOf(series)})
		if since > h.clock+1 {
			h.Errorf("seed %d: once one plan has applied all records, %s is complete since %d, want at most %d", h.seed, series.ID, since, h.clock+1)
		}
		if series != seriesA && since == state.MinTime {
			h.answered["filled"]++
		}
	}
}

// step has something happen.
func (h *histories) step() {
	h.Helper()
	p := transactions
	if h.random.IntN(2) == 0 {
		p = beside
	}
	for range h.random.IntN(8) {
		h.clock += h.random.Int64N(20)
		stamp := h.clock - h.random.Int64N(400)
		h.logs[p] = append(h.logs[p], loggedRecord{deviceAt(h.random.Int64N(devices)), stamp - h.random.Int64N(20), stamp})
	}
	parted, parts := h.s.(Parted)
	shard := h.random.IntN(h.s.Shards())
	switch kind := h.random.IntN(14); {
	case h.end != nil: // what hangs does so for a few steps
		if kind < 3 {
			h.end()
			h.end, h.owners = nil, nil
			return
		}
	case kind == 0:
		h.saved[shard] = h.s.Save(shard)
	case kind == 1 && h.saved[shard] != nil:
		h.saved[shard]()
	case kind < 4:
		h.fill(versions[h.random.IntN(len(versions))], 1+h.random.Int64N(20))
	case kind == 4 && parts:
		_, h.end = parted.Hang()
		return
	case kind < 7 || len(h.owners) == 0:
		version := "abc"
		if h.random.IntN(2) == 0 {
			version = versions[h.random.IntN(len(versions))]
		}
		h.owners = append(h.owners, h.claim(p, version, true))
	}
	if len(h.owners) == 0 {
		return
	}
	i := h.random.IntN(len(h.owners))
	o := h.owners[i]
	if o.last != nil && h.random.IntN(6) == 0 {
		h.send(o, o.last, -1) // as if there had been no reply
		return
	}
	interrupt := -1
	if h.random.IntN(4) == 0 {
		interrupt = h.random.IntN(12)
	}
	if !h.apply(o, h.random.IntN(10), interrupt) {
		h.owners = slices.Delete(h.owners, i, i+1)
	}
}

// claim takes a partition, and places it at its start where it has no position. If it may wait, others may do so meanwhile.
func (h *histories) claim(p state.Partition, version string, mayWait bool) *historian {
	h.Helper()
	of := h.s.(store.Store)
	if h.random.IntN(2) == 0 {
		of = h.s.Another()
		if err := of.Create(h.Context()); err != nil {
			h.Fatal(err)
		}
	}
	if _, err := of.Register(h.Context(), state.Registration{Plan: planOf(version, kept[version]...)}); err != nil {
		h.Fatal(err)
	}
	progress := claim(h.T, of, p, version).Progress
	if mayWait && h.random.IntN(5) == 0 { // another one overtakes it
		h.owners = append(h.owners, h.claim(p, versions[h.random.IntN(len(versions))], true))
	}
	if state.Lowest(progress) < 0 {
		first := state.Placement{Partition: p.WithPlan(version), From: progress, To: slices.Clone(progress), Partitions: 1}
		for shard, at := range progress {
			if !at.Exists() {
				first.To[shard] = state.Position{Epoch: -1}
			}
		}
		if _, err := of.Place(h.Context(), first); err != nil {
			h.Fatal(err)
		}
		progress = first.To
	}
	return &historian{
		version: version, writer: of.NewWriter(), at: state.Lowest(progress),
		share: state.PartitionRange{Partition: p.WithPlan(version), Epoch: -1, Progress: progress, Lagging: make([]bool, len(progress))},
	}
}

// apply applies the next records from the owner's knowledge of its partition, and interrupts that after some steps. It
// returns false if the owner must read the partition again.
func (h *histories) apply(o *historian, n, interrupt int) bool {
	h.Helper()
	p := state.Partition{Topic: transactions.Topic, ID: o.share.Partition.ID}
	log := h.logs[p]
	to := min(o.at+int64(n), int64(len(log)))
	b := &state.Batch{Ranges: []state.PartitionRange{o.share}, EveryShard: h.random.IntN(3) == 0, Series: kept[o.version]}
	b.Ranges[0].To = to
	for offset := o.at; offset < to; offset++ {
		r := log[offset]
		o.newest = max(o.newest, r.timestamp)
		b.Update(0, offset, r.device)
		for _, s := range kept[o.version] {
			b.Add(state.Mutation{Series: s, Tile: r.time, Num: 1})
		}
	}
	b.Now = o.newest
	sent := *b
	sent.Ranges = slices.Clone(b.Ranges)
	sent.Ranges[0].Progress = slices.Clone(b.Ranges[0].Progress)
	o.last, o.at = &sent, to
	whole := h.send(o, b, interrupt)
	o.share.Behind = b.Ranges[0].Behind
	return whole && !o.share.Behind
}

// send sends a batch, and reports whether it was applied as a whole.
func (h *histories) send(o *historian, b *state.Batch, interrupt int) bool {
	h.Helper()
	h.s.Interrupt(interrupt)
	err := o.writer.Apply(h.Context(), b)
	h.s.Interrupt(-1)
	if err != nil && interrupt < 0 {
		h.Fatal(err)
	}
	return err == nil
}

// fill applies some records that the fills of a plan lack, if it keeps any, and reports whether any were left.
func (h *histories) fill(version string, n int64) (left bool) {
	h.Helper()
	fills, err := h.s.Fills(h.Context(), planOf(version, kept[version]...))
	if err != nil {
		h.Fatal(err)
	}
	for _, fill := range fills {
		for p := range h.logs {
			if err := h.s.StartFill(h.Context(), state.FillStart{Fill: fill, Partition: p, Since: state.MinTime}); err != nil {
				h.Fatal(err)
			}
			found, err := h.s.Fillings(h.Context(), fill, []state.Partition{p})
			if err != nil {
				h.Fatal(err)
			}
			left = h.fillPart(fill, p, found[0], n) || left
		}
	}
	return left
}

// fillPart applies the first records that shards lack, those that the same shards and slices lack; false if there are none.
func (h *histories) fillPart(fill *state.Fill, p state.Partition, found []state.Filling, n int64) bool {
	h.Helper()
	edges := map[int64]bool{}
	for i := range found {
		for _, r := range found[i].Left() {
			edges[r.From], edges[r.To] = true, true
		}
	}
	if len(edges) < 2 {
		return false
	}
	sorted := slices.Sorted(maps.Keys(edges))
	from, to := sorted[0], min(sorted[1], sorted[0]+n)
	r := state.PartitionRange{Partition: fill.Partition(p), To: to, Epoch: -1}
	for i := range found {
		without := state.AllSlices
		for _, left := range found[i].Left() {
			if left.From <= from && to <= left.To {
				without &= left.Without
			}
		}
		r.Progress, r.Without = append(r.Progress, found[i].At), append(r.Without, without)
	}
	b := &state.Batch{Ranges: []state.PartitionRange{r}, EveryShard: true, Series: kept["abc"]}
	for offset := from; offset < to; offset++ {
		record := h.logs[p][offset]
		b.Update(0, offset, record.device)
		for _, s := range kept["abc"] {
			if fill.Has(p.Topic, s.ID+".x") {
				b.Add(state.Mutation{Series: s, Tile: record.time, Num: 1})
			}
		}
	}
	if err := h.s.NewWriter().Apply(h.Context(), b); err != nil {
		h.Fatal(err)
	}
	return true
}

// check compares the state, from the time since which it is said to be complete, with the logs.
func (h *histories) check() {
	h.Helper()
	var reads []state.Read
	for _, series := range kept["abc"] {
		for d := range int64(devices) {
			reads = append(reads, state.Read{Series: series, Entity: string(deviceAt(d)), First: 0, Last: day})
		}
	}
	stored, err := h.s.Read(h.Context(), reads)
	if err != nil {
		h.Fatal(err)
	}
	parts := slices.Collect(maps.Keys(h.logs))
	progress, err := h.s.Progress(h.Context(), parts)
	if err != nil {
		h.Fatal(err)
	}
	history, err := h.s.History(h.Context())
	if err != nil {
		h.Fatal(err)
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
		want, got, hash := 0, 0, state.EntityHash([]byte(read.Entity))
		for n, p := range parts {
			at := progress[n][state.Shard(hash, h.s.Shards())]
			for _, r := range h.logs[p][:max(0, at.In(state.SliceOf(hash)))] {
				if string(r.device) == read.Entity && r.time >= since {
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
			h.Fatalf("seed %d: %s of %s holds %d events since %d, want %d; the history is %+v, the progress %v",
				h.seed, read.Series.ID, read.Entity, got, since, want, history.PlanEpochs, progress)
		}
	}
}
