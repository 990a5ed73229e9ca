package backfill

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
)

// Backfills under way are listed by topic, with their speed since they began in this process, until nothing is left.
func TestRunning(t *testing.T) {
	s := running{all: map[fillOf]*runningFill{}}
	f := &state.Fill{ID: "1", Columns: map[string][]string{"logins": nil, "payments": nil}}
	began := time.UnixMilli(1_000_000)
	names := []string{"count", "sum"}
	for i, step := range []struct {
		progress map[string]Progress
		want     []Running
	}{
		{map[string]Progress{"payments": {}}, []Running{{Features: names, Topic: "payments"}}},
		{map[string]Progress{"payments": {Filled: 100, All: 500}, "logins": {Filled: 5, All: 5, Done: true}},
			[]Running{{Features: names, Topic: "payments", Applied: 100, Total: 500}}},
		{map[string]Progress{"payments": {Filled: 200, All: 500}, "logins": {All: 30}},
			[]Running{{Features: names, Topic: "logins", Total: 30}, {Features: names, Topic: "payments", Applied: 200, Total: 500, Rate: 10, Left: 30 * time.Second}}},
		// Redis went back in time: the speed is unknown.
		{map[string]Progress{"payments": {Filled: 90, All: 500}}, []Running{{Features: names, Topic: "payments", Applied: 90, Total: 500}}},
		{map[string]Progress{"payments": {Filled: 500, All: 500, Done: true}}, nil},
	} {
		s.set(f, names, step.progress, Files{}, began.Add(time.Duration(i)*10*time.Second))
		if diff := cmp.Diff(step.want, s.list()); diff != "" {
			t.Errorf("step %d: the running fills differ (-want +got):\n%s", i, diff)
		}
	}
	s.set(f, names, map[string]Progress{"payments": {Filled: 5, All: 5, Done: true}}, Files{2, 7, 10}, began)
	if list := s.list(); len(list) != 1 || list[0].Files.Applied != 7 {
		t.Errorf("a fill whose files are not applied is listed as %+v, want one with 7 rows applied", list)
	}
	s.set(f, names, map[string]Progress{"payments": {Filled: 5, All: 5, Done: true}}, Files{2, 10, 10}, began)
	if list := s.list(); len(list) > 0 {
		t.Errorf("a fill with all records and rows is listed: %+v", list)
	}
	s.set(f, names, map[string]Progress{"payments": {All: 500}}, Files{}, began)
	s.forget(f)
	if list := s.list(); len(list) > 0 {
		t.Errorf("a fill that is no longer under way is listed: %+v", list)
	}
}

// The rest of a fill that hardly moves is unknown: in nanoseconds it would overflow.
func TestFillThatHardlyMoves(t *testing.T) {
	began, p := time.UnixMilli(1_000_000), pace{}
	p.note(Progress{All: 1_000_000_000}, began)
	if left := p.left(Progress{Filled: 2000, All: 1_000_000_000}, began.Add(24*time.Hour)); left != 0 {
		t.Errorf("the rest takes %v, want that it is unknown", left)
	}
}

// The share of rows is right for billions of them in many shards.
func TestShareOfManyRows(t *testing.T) {
	const rows, shards = 5_000_000_000, 1024
	for _, c := range []struct{ filled, all, rows, want int64 }{
		{0, 1, 7, 0}, {1, 3, 10, 3}, {shards * rows, shards * rows, rows, rows}, {shards*rows - 1, shards * rows, rows, rows - 1},
	} {
		if got := share(c.filled, c.all, c.rows); got != c.want {
			t.Errorf("%d of %d are %d of %d rows, want %d", c.filled, c.all, got, c.rows, c.want)
		}
	}
}
