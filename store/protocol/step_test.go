package protocol

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// shelf is an engine of one shard. Before each change something may happen to its record.
type shelf struct {
	records map[int]map[string]string
	happens func(fields map[string]string)
	changes int
	away    error
}

func (s *shelf) Shards() int                                  { return 1 }
func (s *shelf) Name(record int) string                       { return fmt.Sprint("record ", record) }
func (s *shelf) Down(context.Context) error                   { return s.away }
func (s *shelf) Begin(context.Context, []int) error           { s.records[0]["begun"] = "1"; return nil }
func (s *shelf) Servers(context.Context) []*Server            { return []*Server{nil} }
func (s *shelf) Names(context.Context, int) ([]string, error) { return nil, s.away }

func (s *shelf) Read(_ context.Context, q Query) (found []Found) {
	for _, record := range q.Records {
		found = append(found, Found{Fields: maps.Clone(s.records[record]), Err: s.away})
	}
	return found
}

func (s *shelf) Change(_ context.Context, changes []Change) {
	for i := range changes {
		c := &changes[i]
		s.happens(s.records[c.Record])
		s.changes++
		c.Made = c.Make(s.records[c.Record], c.Last, fmt.Sprint(s.changes), 0)
	}
}

func newShelf(happens func(fields map[string]string)) (*shelf, *Protocol) {
	s := &shelf{records: map[int]map[string]string{0: {}, Plans: {}, Used: {}}, happens: happens}
	return s, New(s, func(string) int { return 0 }, time.Hour, time.Now)
}

// A plan gets its partitions although batches of another plan move positions of them at each try: one by one.
func TestClaimWhilePositionsMove(t *testing.T) {
	const moves = 40
	var partitions []state.Partition
	for id := range int32(10) {
		partitions = append(partitions, state.Partition{Topic: "tx", ID: id})
	}
	happened := 0
	s, p := newShelf(func(fields map[string]string) {
		held := slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(name string) bool { return !strings.HasPrefix(name, "tx@old/") })
		if happened++; len(held) == 0 || happened > moves {
			return
		}
		last := held[len(held)-1]
		at, err := state.ParsePosition(fields[last])
		if err != nil {
			t.Fatal(err)
		}
		fields[last] = at.To(at.Offset + 1).String()
	})
	for _, partition := range partitions {
		s.records[0][progress.PositionField(partition.WithPlan("old"))] = "7:0:"
	}
	claims, err := p.Claim(t.Context(), partitions, state.Claimant{Version: "new"})
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for i, c := range claims {
		if now := s.records[0][progress.PositionField(partitions[i].WithPlan("new"))]; c.Progress[0].String() != now {
			t.Errorf("%v was claimed at %v, and is at %s", partitions[i], c.Progress[0], now)
		}
		total += c.Progress[0].Offset
	}
	if want := int64(7*len(partitions) + moves); total != want {
		t.Errorf("the positions add up to %d, want %d: none may be lost", total, want)
	}
	if s.changes > moves+len(partitions) {
		t.Errorf("%d changes were tried", s.changes)
	}
}

// A step that never succeeds ends with an error that names the record.
func TestRecordThatAlwaysChanges(t *testing.T) {
	s, p := newShelf(func(fields map[string]string) { fields[progress.ChangeField] += "x" })
	const want = "record 0 changed 1000 times while it was changed"
	if err := p.Gap(t.Context(), state.Partition{Topic: "tx"}, 5); err == nil || !strings.HasSuffix(err.Error(), want) || s.changes != maxAttempts+1 {
		t.Errorf("after %d changes, error %v; want %s", s.changes, err, want)
	}
	if _, err := p.Register(t.Context(), state.Registration{Plan: &state.Plan{Version: "v"}, Group: "g"}); err == nil {
		t.Error("a register that always changes was changed")
	}
}
