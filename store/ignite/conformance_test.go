package ignite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/ignite/thin"
	"github.com/weir-stream/weir/store/protocol"
	"github.com/weir-stream/weir/store/storetest"
	"github.com/weir-stream/weir/store/values"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// client returns a client of a cluster.
func client(t *testing.T, c *ignitetest.Cluster) *thin.Client {
	made := thin.New(thin.Config{Addresses: c.Addresses(), Login: thin.Login{Timeout: 10 * time.Second}, Request: 20 * time.Second})
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	return made
}

// namespace is a namespace of the cluster, in which what the suite wants happens.
type namespace struct {
	*values.Store
	t      *testing.T
	engine *interrupted
	config Config
}

// interrupted is an engine whose updates can be made to fail.
type interrupted struct {
	*engine
	steps atomic.Int64 // negative for ever
}

func (e *interrupted) Update(ctx context.Context, shard int, keys []values.Key, change func([][]byte) []values.Write) error {
	if len(keys) > 1 && e.steps.Add(-1) == -1 {
		e.steps.Store(0)
		return errInterrupted
	}
	return e.engine.Update(ctx, shard, keys, change)
}

var errInterrupted = errors.New("interrupted")

const endless = math.MinInt64 / 2

func (n *namespace) open() *namespace {
	e := &interrupted{engine: newEngine(&n.config)}
	e.steps.Store(endless)
	return &namespace{values.New(e, options(&n.config)), n.t, e, n.config}
}

func (n *namespace) Another() store.Store { return n.open() }

// Interrupt has calls of Apply fail after some more steps.
func (n *namespace) Interrupt(steps int) {
	if steps < 0 {
		steps = endless
	}
	n.engine.steps.Store(int64(steps))
}

func (n *namespace) Save(shard int) (restore func()) {
	return n.save(n.engine.id(values.Key{Shard: shard}), func(k thin.UUID) bool { return k.High > 1 || k.High == 0 })
}

func (n *namespace) SavePlans() (restore func()) {
	plans := n.engine.id(values.Key{Shard: protocol.Plans})
	return n.save(plans, func(k thin.UUID) bool { return k == plans })
}

// save returns a function that puts the values of a partition back to the moment of the call.
func (n *namespace) save(of thin.UUID, belongs func(thin.UUID) bool) (restore func()) {
	saved := n.content(of, belongs)
	return func() {
		tx, err := n.engine.cache.Begin(n.t.Context(), of)
		n.check(err)
		var gone []thin.UUID
		for _, e := range n.content(of, belongs) {
			gone = append(gone, e.Key)
		}
		n.check(tx.RemoveAll(n.t.Context(), gone))
		if len(saved) > 0 {
			n.check(tx.PutAll(n.t.Context(), saved, 0))
		}
		n.check(tx.End(n.t.Context(), true))
	}
}

func (n *namespace) content(of thin.UUID, belongs func(thin.UUID) bool) (all []thin.Entry) {
	n.check(n.engine.cache.Scan(n.t.Context(), of.Partition(), func(e thin.Entry) error {
		if belongs(e.Key) {
			all = append(all, e)
		}
		return nil
	}))
	return all
}

func (n *namespace) check(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *namespace) LoseRecord(shard int) {
	record := n.engine.id(values.Key{Shard: shard})
	tx, err := n.engine.cache.Begin(n.t.Context(), record)
	n.check(err)
	n.check(tx.RemoveAll(n.t.Context(), []thin.UUID{record}))
	n.check(tx.End(n.t.Context(), true))
}

func (n *namespace) Spoil(s *state.Series, entity string) {
	k := n.engine.id(values.Key{Shard: state.Shard(state.EntityHash([]byte(entity)), n.Shards()), Group: s.Group, Entity: entity})
	tx, err := n.engine.cache.Begin(n.t.Context(), k)
	n.check(err)
	n.check(tx.PutAll(n.t.Context(), []thin.Entry{{Key: k, Value: []byte("other")}}, 0))
	n.check(tx.End(n.t.Context(), true))
}

// The store passes the conformance suite, but for what needs a clock that can be moved, and shards that fail separately: of Ignite
// all nodes answer for all shards.
func TestConformance(t *testing.T) {
	c := client(t, ignitetest.Shared(t))
	storetest.TestStore(t, func(shards, mutations int) storetest.Namespace {
		n := &namespace{t: t, config: Config{
			Client: c, Namespace: testkit.Namespace(t), Shards: shards, Mutations: mutations, Slack: time.Hour, Backups: 1,
		}}
		n.check(New(n.config).Create(t.Context()))
		return n.open()
	})
}

// Updates of the same values by several processes at once are all made, one after the other.
func TestConflicts(t *testing.T) {
	c := client(t, ignitetest.Shared(t))
	n := &namespace{t: t, config: Config{Client: c, Namespace: testkit.Namespace(t), Shards: 1, Slack: time.Hour}}
	n.check(New(n.config).Create(t.Context()))
	const processes, each = 8, 25
	record, other := values.Key{}, values.Key{Group: "g", Entity: "e"}
	var updating sync.WaitGroup
	for range processes {
		e := newEngine(&n.config)
		updating.Go(func() {
			for range each {
				err := e.Update(t.Context(), 0, []values.Key{record, other}, func(held [][]byte) []values.Write {
					next := append(held[0][:len(held[0]):len(held[0])], 'x')
					return []values.Write{{Key: record, Bytes: next}, {Key: other, Bytes: next, Keep: time.Hour}}
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	updating.Wait()
	for _, v := range n.open().engine.Read(t.Context(), []values.Key{record, other}) {
		if v.Err != nil || len(v.Bytes) != processes*each {
			t.Errorf("%d of %d updates were made, error %v", len(v.Bytes), processes*each, v.Err)
		}
	}
}

// More updates at once than a node allows transactions of a connection are made one after the other.
func TestManyUpdatesAtOnce(t *testing.T) {
	const shards, atOnce = 300, 64
	n := &namespace{t: t, config: Config{Client: client(t, ignitetest.Shared(t)), Namespace: testkit.Namespace(t), Shards: shards, Slack: time.Hour}}
	n.check(New(n.config).Create(t.Context()))
	e := newEngine(&n.config)
	var updating sync.WaitGroup
	var open atomic.Int64
	many := make(chan struct{})
	for shard := range shards {
		updating.Go(func() {
			err := e.Update(t.Context(), shard, []values.Key{{Group: "g", Entity: fmt.Sprint(shard)}}, func(held [][]byte) []values.Write {
				if open.Add(1) == atOnce {
					close(many)
				}
				<-many
				return []values.Write{{Key: values.Key{Group: "g", Entity: fmt.Sprint(shard)}, Bytes: []byte("x"), Keep: time.Hour}}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	updating.Wait()
}
