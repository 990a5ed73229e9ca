package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/store/storetest"
)

// The store passes the conformance suite on each kind of server.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, connect := range servers {
		t.Run(name, func(t *testing.T) {
			client, hook := connect(t), &cutOff{left: -1}
			client.AddHook(hook)
			storetest.TestStore(t, func(shards, mutations int) storetest.Namespace {
				var options []Option
				if mutations > 0 {
					options = append(options, CallMutations(mutations))
				}
				return &tested{created(t, New(client, testkit.Namespace(t), shards, options...)), t, options, hook}
			})
		})
	}
}

// It passes what depends on the clock where that can be moved.
func TestConformanceInTime(t *testing.T) {
	t.Parallel()
	storetest.TestTime(t, func(shards int) storetest.Timed {
		server := redistest.Embedded(t)
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ReadTimeout: time.Minute})
		t.Cleanup(func() { client.Close() })
		return &timed{&tested{created(t, New(client, testkit.Namespace(t), shards)), t, nil, &cutOff{left: -1}}, server, 0}
	})
}

// It passes what happens while some shards cannot be reached: one master of a cluster hangs.
func TestConformanceWithoutAMaster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	client := hangingClient(t, cluster)
	hook := &cutOff{left: -1}
	client.AddHook(hook)
	options := []Option{hangingDeadlines}
	storetest.TestPartialFailure(t, func(shards int) storetest.Parted {
		for {
			p := &parted{&tested{created(t, New(client, testkit.Namespace(t), shards, options...)), t, options, hook}, cluster.Nodes[0], nil}
			for _, tag := range p.tags {
				m, err := p.masters.of(t.Context(), tag)
				if err != nil {
					t.Fatal(err)
				}
				p.mine = append(p.mine, m.address == p.node.Addr())
			}
			if slices.Contains(p.mine, true) && slices.Contains(p.mine, false) {
				return p
			}
		}
	})
}

// tested is a namespace with what the suite has happen to it.
type tested struct {
	*Store
	t       testing.TB
	options []Option
	hook    *cutOff
}

func (s *tested) Another() store.Store { return New(s.redis, s.namespace, len(s.tags), s.options...) }

func (s *tested) Interrupt(steps int) { s.hook.set(steps) }

func (s *tested) LoseRecord(shard int) {
	s.t.Helper()
	if err := s.redis.Del(s.t.Context(), keyspace.ProgressKey(s.tags[shard])).Err(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *tested) Spoil(of *state.Series, entity string) {
	s.t.Helper()
	key := string(s.appendKey(nil, of, entity))
	if err := errors.Join(s.redis.Del(s.t.Context(), key).Err(), s.redis.SAdd(s.t.Context(), key, "not ours").Err()); err != nil {
		s.t.Fatal(err)
	}
}

// saved is the content of a key.
type saved struct {
	text   string
	fields map[string]string // nil for a string
}

func (s *tested) Save(shard int) (restore func()) {
	s.t.Helper()
	ctx, node, keys := s.keysOf(shard)
	held := map[string]saved{}
	for _, key := range keys {
		text, err := node.Get(ctx, key).Result()
		if err == nil {
			held[key] = saved{text: text}
			continue
		}
		fields, err := node.HGetAll(ctx, key).Result()
		if err != nil {
			s.t.Fatal(err)
		}
		held[key] = saved{fields: fields}
	}
	return func() {
		s.t.Helper()
		ctx, node, keys := s.keysOf(shard)
		pipe := node.Pipeline()
		for _, key := range keys {
			pipe.Del(ctx, key)
		}
		for key, of := range held {
			if of.fields == nil {
				pipe.Set(ctx, key, of.text, 0)
			} else {
				pipe.HSet(ctx, key, of.fields)
			}
		}
		if _, err := pipe.Exec(ctx); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *tested) SavePlans() (restore func()) {
	s.t.Helper()
	key := plansKey(s.namespace)
	held := s.redis.HGetAll(s.t.Context(), key).Val()
	return func() {
		s.t.Helper()
		s.redis.Del(s.t.Context(), key)
		if err := s.redis.HSet(s.t.Context(), key, held).Err(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// keysOf returns the keys of a shard, and the server that has them.
func (s *tested) keysOf(shard int) (context.Context, redis.UniversalClient, []string) {
	s.t.Helper()
	ctx := s.t.Context()
	m, err := s.masters.of(ctx, s.tags[shard])
	if err != nil {
		s.t.Fatal(err)
	}
	keys, err := m.node.Keys(ctx, s.tags[shard]+"*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return ctx, m.node, keys
}

// timed has a server of its own, whose clock can be moved.
type timed struct {
	*tested
	server interface {
		SetTime(time.Time)
		FastForward(time.Duration)
	}
	passed time.Duration
}

func (s *timed) Pass(d time.Duration) {
	s.passed += d
	s.server.SetTime(time.Now().Add(s.passed))
	s.server.FastForward(max(d, 0)) // times to live
}

// parted has shards on a master that can hang.
type parted struct {
	*tested
	node *redistest.Server
	mine []bool // by shard, whether the node holds it
}

func (s *parted) Hang() (hung []bool, end func()) {
	s.node.Pause()
	return s.mine, func() {
		s.node.Resume()
		untilServed(s.t, s.Store)
	}
}

// cutOff is a hook that lets a number of script calls reach the server, all if it is negative. The others fail.
type cutOff struct {
	mu   sync.Mutex
	left int
}

// errCutOff is an error that the server could have replied: its master counts as available.
var errCutOff redis.Error = refusal("ERR cut off")

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

func (*cutOff) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *cutOff) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if c.cuts(cmd) {
			cmd.SetErr(errCutOff)
			return errCutOff
		}
		return next(ctx, cmd)
	}
}

func (c *cutOff) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		i := slices.IndexFunc(cmds, c.cuts)
		if i < 0 {
			return next(ctx, cmds)
		}
		for _, lost := range cmds[i:] {
			lost.SetErr(errCutOff)
		}
		if i == 0 {
			return errCutOff
		}
		return next(ctx, cmds[:i])
	}
}

// cuts counts a script call, and reports whether it is cut off.
func (c *cutOff) cuts(cmd redis.Cmder) bool {
	if cmd.Name() != "evalsha" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 {
		c.left--
		return false
	}
	return c.left == 0
}

func (c *cutOff) set(left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = left
}
