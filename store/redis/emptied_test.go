package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/redis/inspector"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// lost is a namespace of which shards lose their progress, with the events that it has.
type lost struct {
	*testing.T
	*Store
	list    []event
	deleted int64 // as was noted
}

// onLost runs a test on kinds of servers, with events of several devices in all shards.
func onLost(t *testing.T, on map[string]func(testing.TB) redis.UniversalClient, test func(l *lost)) {
	for name, client := range on {
		t.Run(name, func(t *testing.T) { test(newLost(t, client(t))) })
	}
}

func newLost(t *testing.T, client redis.UniversalClient) *lost {
	l := &lost{T: t, Store: newStore(t, client, 4)}
	NoteEmptied(func(keys int64) { l.deleted += keys })(l.Store)
	start(t, l.Store, transactions)
	for offset := range int64(90) {
		l.list = append(l.list, event{offset: offset, device: fmt.Sprint("d", offset%9), user: fmt.Sprint("u", offset%4), time: (100 + offset%7) * day, cents: offset})
	}
	l.read()
	checkAll(t, l.Store, l.list)
	return l
}

// loses has shards lose their progress.
func (l *lost) loses(shards ...int) {
	l.Helper()
	for _, shard := range shards {
		if n := l.redis.Del(l.Context(), keyspace.ProgressKey(l.tags[shard])).Val(); n != 1 {
			l.Fatalf("shard %d has no progress to lose", shard)
		}
	}
}

// keys are the numbers of state keys, by shard.
func (l *lost) keys() []int {
	l.Helper()
	found := make([]int, len(l.tags))
	for shard, tag := range l.tags {
		for _, device := range []string{"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8"} {
			for _, series := range []*state.Series{events, ever} {
				found[shard] += int(l.redis.Exists(l.Context(), string(keyspace.AppendKey(nil, tag, series.Group, []byte(device)))).Val())
			}
		}
	}
	return found
}

// first is the placement of the shards without progress, at the start of the log.
func (l *lost) first() state.Placement {
	l.Helper()
	progress, err := l.Progress(l.Context(), []state.Partition{transactions})
	if err != nil {
		l.Fatal(err)
	}
	p := state.Placement{Partition: transactions, From: progress[0], To: slices.Clone(progress[0]), Partitions: 1}
	for shard, at := range p.To {
		if !at.Exists() {
			p.To[shard] = state.Position{Epoch: -1}
		}
	}
	return p
}

// place places some shards, and expects how many that are.
func (l *lost) place(p state.Placement, want int) {
	l.Helper()
	if placed, err := l.Place(l.Context(), p); err != nil || placed != want {
		l.Fatalf("placed %d, %v, want %d", placed, err, want)
	}
}

// read applies all events from the progress on.
func (l *lost) read() {
	l.Helper()
	b := begin(l.T, l.Store, transactions)
	fill(b, 0, l.list...)
	apply(l.T, l.newWriter(), b)
	if b.Ranges[0].Behind {
		l.Fatalf("the store went back in time: %v", b.Ranges[0].Progress)
	}
}

// A shard that has lost its progress and not its state is emptied, and read again from the log: no event counts twice. Other
// shards, and keys that hold no state, stay.
func TestShardThatLostItsProgressIsEmptied(t *testing.T) {
	t.Parallel()
	for name, shards := range map[string][]int{"one shard": {2}, "some shards": {0, 3}, "all shards": {0, 1, 2, 3}} {
		t.Run(name, func(t *testing.T) {
			onLost(t, servers, func(l *lost) {
				ctx, before := l.Context(), l.keys()
				strange := []string{l.tags[shards[0]] + "strange", keyspace.ChangedKey(l.tags[shards[0]], "token"), l.namespace + ":strange"}
				for _, key := range strange {
					if err := l.redis.Set(ctx, key, "x", 0).Err(); err != nil {
						l.Fatal(err)
					}
				}
				l.loses(shards...)
				l.place(l.first(), len(shards))
				after, want := l.keys(), int64(0)
				for shard, n := range before {
					if slices.Contains(shards, shard) {
						want += int64(n)
						n = 0
					}
					if after[shard] != n {
						l.Errorf("shard %d has %d state keys, want %d", shard, after[shard], n)
					}
				}
				if l.deleted != want || want == 0 {
					l.Errorf("%d keys were noted, want %d", l.deleted, want)
				}
				for _, key := range strange {
					if l.redis.Exists(ctx, key).Val() != 1 {
						l.Errorf("%s was deleted", key)
					}
				}
				l.read()
				checkAll(l.T, l.Store, l.list)
			})
		})
	}
}

// A shard that has progress is not emptied when more partitions are placed, even if that is only the progress of a plan or of a fill
// from files.
func TestShardWithProgressIsNotEmptied(t *testing.T) {
	t.Parallel()
	onLost(t, servers, func(l *lost) {
		ctx, key := l.Context(), keyspace.ProgressKey(l.tags[1])
		for _, fields := range [][]any{
			{progress.PositionField(transactions), "90:-1:"},
			{progress.PositionField(transactions.WithPlan("v7.g2")), "90:-1:"},
			{"fill:f:archive:a/0", "5:-1:"},
			{"begun", "1"},
		} {
			l.loses(1)
			if err := l.redis.HSet(ctx, key, fields...).Err(); err != nil {
				l.Fatal(err)
			}
			before := l.keys()
			l.place(testkit.FirstPlacement(state.Partition{Topic: "more"}, 4, 0), 4)
			if after := l.keys(); !slices.Equal(before, after) || l.deleted != 0 {
				l.Errorf("%v: there are %d keys, want %d", fields, after, before)
			}
			for shard, tag := range l.tags {
				if n := l.redis.HDel(ctx, keyspace.ProgressKey(tag), "more/0").Val(); n != 1 {
					l.Errorf("shard %d was not placed", shard)
				}
			}
		}
		// These are no positions.
		l.loses(1)
		for field, value := range map[string]string{
			"since:t/1": "7", "range:f:t/1": "7;", "topic:t": "l:7", "log:l": "7/7", "t@!": "7", "t@v1": "7", "now": "7", "archive:c:a": "7;7",
		} {
			if err := l.redis.HSet(ctx, key, field, value).Err(); err != nil {
				l.Fatal(err)
			}
		}
		l.place(l.first(), 1)
		if after := l.keys(); after[1] != 0 || l.deleted == 0 {
			l.Errorf("the shards have %v keys: fields that are no positions were taken for some", after)
		}
	})
}

// A shard begins with rows of files, too: it is emptied before.
func TestShardIsEmptiedBeforeFilesAreRead(t *testing.T) {
	t.Parallel()
	onLost(t, servers, func(l *lost) {
		l.loses(1)
		fill := &state.Fill{ID: "f", Cut: &state.Cut{Topic: transactions.Topic}}
		positions, err := l.BeginArchives(l.Context(), fill, []*state.Archive{{ID: "a", Cut: *fill.Cut}})
		if err != nil || len(positions) != 1 || positions[0][1] != (state.Position{Epoch: -1}) {
			l.Fatalf("the archive begins at %v, %v", positions, err)
		}
		if after := l.keys(); after[1] != 0 || after[0] == 0 {
			l.Errorf("the shards have %v keys", after)
		}
	})
}

// Two owners find at once that a shard has lost its progress. One has begun to apply when the other goes on.
func TestTwoOwnersEmptyAShard(t *testing.T) {
	t.Parallel()
	kinds := ownServers()
	delete(kinds, "miniredis") // SCAN returns all keys at once
	onLost(t, kinds, func(l *lost) {
		l.redis.Set(l.Context(), l.tags[2]+"strange", "x", 0) // it stays, and must not hide other keys
		l.loses(2)
		late := l.first()
		slot, keys := "", []string{}
		for _, tag := range l.tags {
			keys = append(keys, keyspace.ProgressKey(tag))
		}
		if l.masters.cluster != nil {
			slot, keys = fmt.Sprint(keyspace.SlotOf(strings.Trim(l.tags[2], "{}"))), []string{keyspace.ProgressKey(l.tags[2]), l.tags[2] + "none"}
		}
		step := func(at emptying) emptying {
			l.Helper()
			at, err := l.emptyStep(l.Context(), 2, slot, keys, at, 1)
			if err != nil {
				l.Fatal(err)
			}
			return at
		}
		at := step(emptying{place: "0"})
		if l.redis.HExists(l.Context(), keyspace.ProgressKey(l.tags[2]), "begun").Val() {
			l.Fatal("one step of one key has emptied the shard, so nothing was tested")
		}
		l.place(l.first(), 1)
		l.read()
		if at = step(at); !at.over || at.deleted != 0 {
			l.Errorf("the slower owner continues to empty the shard: %+v", at)
		}
		l.place(late, 0)
		checkAll(l.T, l.Store, l.list)

		// The progress is lost once more while the slower one hangs.
		l.loses(2)
		at = step(emptying{place: "0"})
		for range 3 {
			at = step(at)
		}
		l.place(l.first(), 1)
		l.read()
		l.loses(2)
		for !at.over {
			at = step(at)
		}
		l.place(l.first(), 1)
		l.read()
		checkAll(l.T, l.Store, l.list)
	})
}

// A server goes back to an older copy while a shard is emptied: keys behind the walk are there again, and are deleted all the same.
func TestServerGoesBackWhileAShardIsEmptied(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{AOF: true})
	l := newLost(t, server.Client(t))
	for n := range 200 { // so many that a walk takes many steps
		key := keyspace.AppendKey(nil, l.tags[n%4], events.Group, fmt.Append(nil, "more", n))
		if err := l.redis.Set(t.Context(), string(key), "", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	l.loses(0, 1, 2, 3)
	var keys []string
	for _, tag := range l.tags {
		keys = append(keys, keyspace.ProgressKey(tag))
	}
	at := emptying{place: "0"}
	step := func() {
		var err error
		if at, err = l.emptyStep(t.Context(), 0, "", keys, at, 1); err != nil {
			t.Fatal(err)
		}
	}
	step()
	copied := server.SaveCopy()
	for deleted := int64(0); deleted < 100; deleted += at.deleted {
		if step(); at.over {
			t.Fatal("the walk is over, so nothing was tested")
		}
	}
	server.RestoreCopy(copied)
	for !at.over {
		step()
	}
	if left := l.redis.Keys(t.Context(), keyspace.Pattern(l.namespace)).Val(); len(left) != len(keys) {
		t.Errorf("the keys are %q, want the progress only", left)
	}
	l.place(l.first(), 4)
	l.read()
	checkAll(t, l.Store, l.list)
}

// While a shard is emptied no key appears behind the walk: none is spilled, dropped or refilled. Shards that are being copied are not
// emptied.
func TestNoKeysAppearInAShardThatIsEmptied(t *testing.T) {
	t.Parallel()
	onLost(t, servers, func(l *lost) {
		ctx, shard := l.Context(), l.shardOf("d1")
		progress := keyspace.ProgressKey(l.tags[shard])
		held, err := l.Inspect(ctx, events, "d1")
		if err != nil {
			l.Fatal(err)
		}
		l.loses(shard)
		l.redis.HSet(ctx, progress, "emptying", "a walk")
		for what, err := range map[string]error{
			"dropped": errorOf(l.Drop(ctx, held, nil, packed.Loss{}, 0)), "refilled": l.Refill(ctx, held, inspector.Refill{}),
		} {
			if err == nil || !strings.Contains(err.Error(), "the shard has lost its progress and is being emptied") {
				l.Errorf("%s: got error %v, want a refusal", what, err)
			}
		}
		key := string(keyspace.AppendKey(nil, l.tags[shard], events.Group, []byte("d1")))
		value := l.redis.Get(ctx, key).Val()
		reply, err := l.redis.Eval(ctx, compactLua, []string{key, childKey(l.Store, pairs, "d1|u1"), progress}, append(replacing([]byte(value), nil)[:6], 1, "spilled", 0, "", "")...).Int64Slice()
		if err != nil || reply[0] != 0 || value == "" || l.redis.Get(ctx, key).Val() != value {
			l.Errorf("a compaction spilled keys: reply %v, error %v", reply, err)
		}
		before := l.keys()
		for _, field := range []string{keyspace.CopyingField, keyspace.FrozenField} {
			l.redis.HSet(ctx, progress, field, "token")
			if _, err := l.Place(ctx, l.first()); !frozen(err) {
				l.Errorf("%s: a placement was not refused: error %v", field, err)
			}
			if err := l.empty(ctx, []int{shard}); !frozen(err) { // as for another shard of the server
				l.Errorf("%s: emptying was not refused: error %v", field, err)
			}
			l.redis.HDel(ctx, progress, field)
		}
		if after := l.keys(); !slices.Equal(before, after) {
			l.Errorf("the shards have %v keys, want %v", after, before)
		}
		l.place(l.first(), 1)
		if names := l.redis.HKeys(ctx, progress).Val(); slices.Contains(names, "emptying") || !slices.Contains(names, "begun") {
			l.Errorf("the progress has the fields %v, want begun and not emptying", names)
		}
		l.read()
		checkAll(l.T, l.Store, l.list)
	})
}

// A full memory does not keep a shard from being emptied, which makes room.
func TestShardIsEmptiedInAFullMemory(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	l := newLost(t, server.Client(t))
	l.loses(0, 1, 2, 3)
	if err := l.redis.Do(t.Context(), "config", "set", "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := l.empty(t.Context(), []int{0}); err != nil {
		t.Fatal(err)
	}
	if after := l.keys(); slices.Max(after) > 0 {
		t.Errorf("the shards have %v keys, want none", after)
	}
}

// A shard whose slot is moving key by key is not emptied, because some of its keys may be at the other master. Once its slot has
// moved, it is.
func TestShardWhoseSlotMovesIsNotEmptied(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]int{"no key has moved": 0, "some keys have moved": 5, "all keys have moved": 1000} {
		t.Run(name, func(t *testing.T) {
			m := newMoving(t)
			slot := m.halfMoved(m.tags[m.shard], m.node, m.cluster.Nodes[1], keys)
			if m.redis.Del(t.Context(), keyspace.ProgressKey(m.tags[m.shard])).Val() != 1 {
				t.Fatal("the shard has no progress to lose")
			}
			held := func() (n int) {
				for _, node := range m.cluster.Nodes[:2] {
					n += len(node.Client(t).ClusterGetKeysInSlot(t.Context(), slot, 1000).Val())
				}
				return n
			}
			before := held()
			l := &lost{T: t, Store: m.Store}
			if _, err := m.Place(t.Context(), l.first()); !errors.Is(err, state.ErrUnavailable) {
				t.Fatalf("placed while the slot moves: error %v, want %v", err, state.ErrUnavailable)
			}
			if after := held(); after != before || before == 0 {
				t.Errorf("the slot has %d keys, want %d", after, before)
			}
			if err := redistest.MoveSlot(t.Context(), slot, m.node, m.cluster.Nodes[1], m.cluster.Nodes...); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, time.Minute, "the shard is placed", func() (bool, string) {
				placed, err := m.Place(t.Context(), l.first())
				return err == nil && placed == 1, fmt.Sprint(placed, err)
			})
			if after := held(); after != 1 {
				t.Errorf("the slot has %d keys, want the progress only", after)
			}
			m.share.Progress, m.share.Lagging = l.first().From, nil
			m.batch(0, 10)
			m.count(10, 10)
		})
	}
}
