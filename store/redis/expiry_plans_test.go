package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// A key with nothing in it, which a compaction has left with the time to live of another plan, does not live shorter than
// any plan wants after the next append: the other plan has no reason to give it its time again, and one that keeps the key
// forever may append only once.
func TestAppendToAnEmptiedKeyDoesNotShortenItsLife(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		lives := func(of *state.Series, offset int64, left time.Duration) time.Duration {
			t.Helper()
			key := string(keyspace.AppendKey(nil, s.tags[0], of.Group, []byte("d1")))
			if err := s.redis.Set(t.Context(), key, "", left).Err(); err != nil {
				t.Fatal(err)
			}
			b := countOf(t, s, offset, 100*day, "d1")
			b.Mutations[0].Series = of
			apply(t, s.newWriter(), b)
			return s.redis.TTL(t.Context(), key).Val()
		}
		if left := lives(events, 0, 90*24*time.Hour); left < 89*24*time.Hour {
			t.Errorf("a key that another plan keeps for 90 days expires after %v", left)
		}
		if left := lives(ever, 1, time.Hour); left != -1 {
			t.Errorf("a key that is kept forever expires after %v", left)
		}
	})
}

// The same holds for the key of a child to which a compaction spills. If the child has state of another plan, it lives
// for as long as its parent.
func TestTimeToLiveOfASpilledChild(t *testing.T) {
	t.Parallel()
	const own, longer, forever = time.Hour, 90 * 24 * time.Hour, -1
	for _, test := range []struct {
		what                string
		child, parent, want time.Duration // 0 for a child that is not there
		others              string
	}{
		{"an emptied child that another plan keeps for longer", longer, longer, longer, ""},
		{"a new child without state of another plan", 0, longer, own, ""},
		{"a new child that another plan may keep for longer", 0, longer, longer, "longer"},
		{"a new child that another plan may keep forever", 0, longer, longer, "forever"},
		{"a new child of a parent that expires sooner", 0, own / 2, own, "longer"},
		{"a new child of a parent that both plans keep forever", 0, forever, own, "longer"},
		{"a new child of a parent that only another plan keeps forever", 0, forever, forever, "forever"},
	} {
		t.Run(test.what, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, s *Store) {
				parent, child := childKey(s, beside, "d1"), childKey(s, pairs, "d1|u1")
				set := func(key, value string, left time.Duration) {
					t.Helper()
					if err := s.redis.Set(t.Context(), key, value, max(left, 0)).Err(); err != nil {
						t.Fatal(err)
					}
				}
				set(parent, "held", test.parent)
				if test.child > 0 {
					set(child, "", test.child)
				}
				keys := []string{parent, child, keyspace.ProgressKey(s.tags[0])}
				args := append(replacing([]byte("held"), nil)[:6], 1, "spilled", own.Seconds(), "", test.others)
				if n, err := s.redis.Eval(t.Context(), compactLua, keys, args...).Int64Slice(); err != nil || n[0] != 1 {
					t.Fatalf("spill: got %v, error %v; want one key replaced", n, err)
				}
				left := s.redis.TTL(t.Context(), child).Val()
				if left > test.want || left < test.want-time.Minute || s.redis.Get(t.Context(), child).Val() != "spilled" {
					t.Errorf("the child expires after %v, want %v", left, test.want)
				}
			})
		})
	}
}

// A key gets the time to live of a new plan from its first append on, also if another process took the partition for that
// plan, and this one only takes it over: it knows when it gave the key the time of the old plan, which was shorter.
func TestTimeToLiveOfANewPlanThatAnotherProcessBegan(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		writer, other := s.newWriter(), New(s.redis, s.namespace, 1)
		add := func(offset int64, version string, keep int64) {
			t.Helper()
			of := *events
			of.Keep, of.GroupKeep = keep-day, keep
			b := countOf(t, s, offset, 100*day, "d1")
			b.Series, b.Mutations[0].Series = []*state.Series{&of}, &of
			b.Ranges[0].Partition = transactions.WithPlan(version)
			apply(t, writer, b)
		}
		claim := func(s *Store, version string) {
			t.Helper()
			if _, err := s.Claim(t.Context(), []state.Partition{transactions}, state.Claimant{Version: version}); err != nil {
				t.Fatal(err)
			}
		}
		claim(s, "short")
		add(0, "short", 2*day)
		claim(other, "long")
		claim(s, "long")
		add(1, "long", 90*day)
		key := childKey(s, events, "d1")
		if left := s.redis.TTL(t.Context(), key).Val(); left < 90*24*time.Hour {
			t.Errorf("the key expires after %v, want at least 90 days", left)
		}
	})
}

// A child that a compaction spills lives for as long as any plan needs it, if another plan has state in it: that plan's
// processors do not know of the child's own key, and an entity may have no further event.
func TestSpilledStateOfALongerPlanDoesNotExpire(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		parent, short, long, forever := *beside, *pairs, *pairs, *pairs
		long.ID, long.GroupKeep, long.ParentKeep, long.Keep = "lpair", 90*day, 90*day, 89*day
		forever.ID, forever.GroupKeep, forever.ParentKeep, forever.Keep = "fpair", 0, 0, 0
		offset := int64(0)
		add := func(w *writer, series *state.Series, device string) {
			t.Helper()
			b := begin(t, s, transactions)
			b.Series, b.Now = []*state.Series{&parent, series}, 100*day
			for n := range 40 {
				b.Update(0, offset, fmt.Appendf(nil, "%s|%040d", device, n))
				b.Add(state.Mutation{Series: series, Tile: 100, Num: 1})
			}
			offset++
			b.Ranges[0].To = offset
			apply(t, w, b)
		}
		w := s.newWriter()
		for _, test := range []struct {
			device    string
			other     *state.Series
			least     time.Duration
			noExpiry  bool
			justShort bool
		}{
			{"d1", &long, 90 * 24 * time.Hour, false, false},
			{"d2", &forever, 0, true, false},
			{"d3", &short, 21 * 24 * time.Hour, false, true},
		} {
			add(s.newWriter(), test.other, test.device)
			key := childKey(s, pairs, fmt.Sprintf("%s|%040d", test.device, 0))
			for range 100 {
				if add(w, &short, test.device); s.redis.Exists(t.Context(), key).Val() == 1 {
					break
				}
			}
			left := s.redis.TTL(t.Context(), key).Val()
			if test.noExpiry != (left == -1) || left < test.least && !test.noExpiry || test.justShort && left > 25*24*time.Hour {
				t.Errorf("a pair of %s, with state of series %s, expires after %v", test.device, test.other.ID, left)
			}
		}
	})
}

// State of another plan in a child is of a series that this plan does not have. Whether the other may keep it forever, the
// parent's key shows only if this plan does not keep that forever itself.
func TestOthersInAChild(t *testing.T) {
	t.Parallel()
	const forever = 0
	later := *pairs
	later.ID = "later"
	child := newGroup(pairs.Group)
	child.series[pairs.Tag()] = pairs
	for _, test := range []struct {
		series *state.Series
		keep   int64 // of the parent, in ms
		want   string
	}{
		{pairs, day, ""}, {pairs, forever, ""}, {&later, day, "forever"}, {&later, forever, "longer"},
	} {
		var p packed.Packer
		p.Begin(test.series)
		p.Add(&state.Mutation{Series: test.series, Tile: 100, Num: 1})
		parent := newGroup(pairs.Parent)
		parent.keep = test.keep
		if got := parent.others(child, p.End(nil)); got != test.want {
			t.Errorf("state of %s, whose parent is kept for %d ms: got %q, want %q", test.series.ID, test.keep, got, test.want)
		}
	}
}
