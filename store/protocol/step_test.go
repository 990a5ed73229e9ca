package protocol

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// shelf is an engine of some shards. Before each change something may happen to its record.
type shelf struct {
	shards  int
	records map[int]map[string]string
	happens func(fields map[string]string)
	changes int
	away    map[int]error // by record
}

func (s *shelf) Shards() int                                  { return s.shards }
func (s *shelf) Name(record int) string                       { return fmt.Sprint("record ", record) }
func (s *shelf) Down(context.Context) error                   { return nil }
func (s *shelf) Begin(context.Context, []int) error           { s.records[0]["begun"] = "1"; return nil }
func (s *shelf) Servers(context.Context) []*Server            { return make([]*Server, s.shards) }
func (s *shelf) Names(context.Context, int) ([]string, error) { return nil, nil }

func (s *shelf) Read(_ context.Context, q Query) (found []Found) {
	for _, record := range q.Records {
		found = append(found, Found{Fields: maps.Clone(s.records[record]), Err: s.away[record]})
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
	s := &shelf{shards: 1, records: map[int]map[string]string{0: {}, 1: {}, Plans: {}, Used: {}}, happens: happens, away: map[int]error{}}
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

// While a shard cannot be read, a history has what was last known of it, and says that it is missing.
func TestHistoryOfAShardThatIsAway(t *testing.T) {
	s, p := newShelf(func(map[string]string) {})
	s.shards = 2
	s.records[0]["tx@v1/0"], s.records[0]["now"] = "5:0:", "50"
	s.records[1]["tx@v2"], s.records[1]["now"] = "70", "70"
	look := func() (versions []string, newest int64, missing bool) {
		h, err := p.History(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range h.PlanEpochs {
			versions = append(versions, fmt.Sprint(e.Version, " ", e.Last))
		}
		slices.Sort(versions)
		return versions, h.Newest, h.Missing != nil
	}
	want := []string{fmt.Sprint("v1 ", state.MaxTime), "v2 70"}
	if versions, newest, missing := look(); !slices.Equal(versions, want) || newest != 70 || missing {
		t.Errorf("plans %v until %d, missing: %v; want %v until 70", versions, newest, missing, want)
	}
	s.away[1], s.records[1] = state.ErrUnavailable, nil
	if versions, newest, missing := look(); !slices.Equal(versions, want) || newest != 70 || !missing {
		t.Errorf("without a shard: plans %v until %d, missing: %v; want %v until 70", versions, newest, missing, want)
	}
	s.away[0] = state.ErrUnavailable
	if _, err := p.History(t.Context()); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("without any shard: error %v", err)
	}
}
