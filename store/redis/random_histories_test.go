package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// Random histories: two owners at once, requests sent twice, batches interrupted between their calls, owners that
// restart from the store's progress, and single shards put back to older copies.
func TestRandomHistories(t *testing.T) {
	client, hook := redistest.Shared(t).Client(t), &cutOff{left: unlimited}
	client.AddHook(hook)
	for seed := range uint64(testkit.Trials(100)) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := newStore(t, client, 3, CallMutations(1+random.IntN(60)))
		start(t, s, transactions, logins)
		logs := [2][]event{randomEvents(random, 150), randomEvents(random, 150)}
		owners := []*owner{newOwner(t, s, hook, logs), newOwner(t, s, hook, logs)}
		copies := make([]map[string]string, 3)
		for steps := 0; ; steps++ {
			switch o := owners[random.IntN(2)]; random.IntN(12) {
			case 0:
				*o = *newOwner(t, s, hook, logs)
			case 1:
				shard := random.IntN(3)
				copies[shard] = dumpShard(t, s, shard)
			case 2:
				if shard := random.IntN(3); copies[shard] != nil && steps < 150 {
					restoreShard(t, s, shard, copies[shard])
				}
			case 3:
				o.resend(random)
			default:
				o.step(random)
			}
			if steps >= 150 && owners[0].finished() {
				break
			}
		}
		checkAll(t, s, slices.Concat(logs[0], logs[1]))
		if t.Failed() {
			t.Fatalf("the counts differ with seed %d", seed)
		}
	}
}

// owner is a processor reduced to its protocol.
type owner struct {
	t    *testing.T
	s    *Store
	w    *writer
	hook *cutOff
	logs [2][]event
	at   [2]int64
	prog [2][]state.Position
	last *state.Batch // sent last, for resending
}

func newOwner(t *testing.T, s *Store, hook *cutOff, logs [2][]event) *owner {
	o := &owner{t: t, s: s, w: s.newWriter(), hook: hook, logs: logs}
	o.rewind(0)
	o.rewind(1)
	return o
}

func (o *owner) rewind(i int) {
	p := []state.Partition{transactions, logins}[i]
	if _, err := o.s.Place(context.Background(), testkit.FirstPlacement(p, o.s.Shards(), 0)); err != nil {
		o.t.Fatal(err)
	}
	progress, err := o.s.Progress(context.Background(), []state.Partition{p})
	if err != nil {
		o.t.Fatal(err)
	}
	o.prog[i], o.at[i] = progress[0], state.Lowest(progress[0])
}

func (o *owner) step(random *rand.Rand) {
	b := &state.Batch{EveryShard: random.IntN(3) == 0}
	for i, p := range []state.Partition{transactions, logins} {
		b.Ranges = append(b.Ranges, state.PartitionRange{Partition: p, Progress: o.prog[i], To: o.at[i]})
		to := min(o.at[i]+random.Int64N(30), int64(len(o.logs[i])))
		fill(b, i, o.logs[i][o.at[i]:to]...)
		o.at[i] = to
	}
	o.last = &state.Batch{Updates: b.Updates, Mutations: b.Mutations, Now: b.Now}
	for _, r := range b.Ranges {
		r.Progress = slices.Clone(r.Progress)
		o.last.Ranges = append(o.last.Ranges, r)
	}
	if random.IntN(4) == 0 {
		o.hook.left = random.IntN(12)
	}
	err := o.w.Apply(context.Background(), b)
	o.hook.left = unlimited
	if err != nil && !errors.Is(err, errCutOff) {
		o.t.Fatal(err)
	}
	for i := range b.Ranges {
		if b.Ranges[i].Behind || err != nil {
			o.rewind(i)
		}
	}
}

// resend repeats the last batch unchanged, like a client that did not receive the reply.
func (o *owner) resend(*rand.Rand) {
	if o.last != nil {
		apply(o.t, o.w, o.last)
		o.last = nil
	}
}

// finished reports whether the store certainly has everything.
func (o *owner) finished() bool {
	for i := range o.logs {
		o.rewind(i)
		if o.at[i] < int64(len(o.logs[i])) {
			return false
		}
	}
	return true
}

func dumpShard(t *testing.T, s *Store, shard int) map[string]string {
	ctx := context.Background()
	dump := map[string]string{}
	for _, key := range shardKeys(t, s, shard) {
		dump[key] = s.redis.Dump(ctx, key).Val()
	}
	return dump
}

func restoreShard(t *testing.T, s *Store, shard int, dump map[string]string) {
	ctx := context.Background()
	for _, key := range shardKeys(t, s, shard) {
		s.redis.Del(ctx, key)
	}
	for key, value := range dump {
		if err := s.redis.Restore(ctx, key, 0, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func shardKeys(t *testing.T, s *Store, shard int) []string {
	keys, err := s.redis.Keys(context.Background(), s.tags[shard]+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
