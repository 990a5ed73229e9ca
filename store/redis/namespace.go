package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

var _ store.Store = (*Namespace)(nil)

// Namespace is the store of a namespace that may be spread over more shards while it is in use; see package reshard. It
// uses the Store with the current number of shards. Once it finds another number, calls go to a Store with that.
// Batches and placements that were made for the old number change nothing: their partitions must be claimed again. It
// is safe for concurrent use.
type Namespace struct {
	mu       sync.RWMutex
	store    *Store
	replaced chan struct{} // closed when store is replaced

	applies atomic.Bool           // this process applies events
	evicts  atomic.Pointer[error] // why servers delete state, see watchServers
}

// NewNamespace returns the namespace of a store.
func NewNamespace(s *Store) *Namespace { return &Namespace{store: s, replaced: make(chan struct{})} }

// Store returns the store with the current number of shards, as far as is known.
func (n *Namespace) Store() *Store {
	s, _ := n.current()
	return s
}

// current returns the current store, and a channel that is closed when another store replaces it.
func (n *Namespace) current() (s *Store, replaced <-chan struct{}) {
	n.mu.RLock()
	s, replaced = n.store, n.replaced
	n.mu.RUnlock()
	if shards := s.spreadOver(); shards > 0 {
		return n.replace(s, shards)
	}
	return s, replaced
}

// replace replaces a store by one with another number of shards.
func (n *Namespace) replace(s *Store, shards int) (*Store, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.store == s {
		n.store = s.withShards(shards)
		close(n.replaced)
		n.replaced = make(chan struct{})
	}
	return n.store, n.replaced
}

// spreadOver returns the number of shards that the namespace was found to have, if it is not the store's; else 0.
func (s *Store) spreadOver() int {
	other := s.other.Load()
	if other == nil || other.What != keyspace.ShardsField {
		return 0
	}
	return keyspace.ParseShards(other.Found)
}

// withShards returns a store of the same namespace with another number of shards.
func (s *Store) withShards(shards int) *Store {
	other := &Store{
		redis: s.redis, namespace: s.namespace, masters: s.masters, replicas: s.replicas, apply: s.apply, compact: s.compact,
		hashing: s.hashing, seal: s.seal, slack: s.slack, noteEmptied: s.noteEmptied, callMutations: s.callMutations,
		servers: serverWatch{note: s.servers.note, allowed: s.servers.allowed},
	}
	other.secret.Store(s.secret.Load())
	other.spread(shards)
	return other
}

// errSpread is the error of a call that was prepared for another number of shards.
var errSpread = errors.New("the namespace has just been spread over more shards")

// frozen reports whether an error means that the shards are frozen, because they have just been, or are being, copied.
func frozen(err error) bool {
	return err != nil && strings.Contains(err.Error(), "RESHARDING ")
}

// next returns the store to repeat a call with after an error of a call with s, or nil if there is none. It is s itself if
// the shards that refused turn out to lack keys: the others go on.
func (n *Namespace) next(ctx context.Context, s *Store, err error) *Store {
	refused := frozen(err)
	if refused {
		_ = s.CheckLayout(ctx) // an error means that the number is not known yet
	}
	next := n.Store()
	switch {
	case err != nil && next != s:
		return next
	case refused && s.resharding.Load() == 0 && s.findHalted(ctx) != nil:
		return s
	}
	return nil
}

// unfinished adds to the error of frozen shards what an operator can do.
func (s *Store) unfinished(err error) error {
	if to := s.resharding.Load(); to > 0 && frozen(err) {
		return fmt.Errorf("%w: if no weir reshard is running, run weir reshard --to %d --yes, or weir reshard --cancel", err, to)
	}
	return err
}

// with makes a call with the current store, and repeats it if the namespace turns out to have another number of shards.
func with[T any](ctx context.Context, n *Namespace, call func(*Store) (T, error)) (T, error) {
	s := n.Store()
	result, err := call(s)
	if next := n.next(ctx, s, err); next != nil {
		s = next
		result, err = call(s)
	}
	return result, s.unfinished(err)
}

// do is with for calls without a result.
func (n *Namespace) do(ctx context.Context, call func(*Store) error) error {
	_, err := with(ctx, n, func(s *Store) (struct{}, error) { return struct{}{}, call(s) })
	return err
}

// Watch checks at least each second whether the namespace has been spread over more shards, and whether servers delete
// state; it tracks what ReadReplica needs, until the context ends.
func (n *Namespace) Watch(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	if s := n.Store(); s.replicas != nil {
		watching.Go(func() { s.watchReplicas(ctx) })
	}
	watching.Go(func() { n.watchServers(ctx) })
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-due.C:
			s := n.Store()
			if s.untilRead() <= 0 {
				_ = s.CheckLayout(ctx) // Ready reports its error
			}
			due.Reset(s.untilRead())
		case <-ctx.Done():
			return
		}
	}
}

// Sweep sweeps as Store.Sweep does, also after the number of shards changes.
func (n *Namespace) Sweep(ctx context.Context, plan *state.Plan, series []*state.Series) {
	for ctx.Err() == nil {
		s, replaced := n.current()
		bounded, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Sweep(bounded, plan, series)
		}()
		select {
		case <-replaced:
		case <-ctx.Done():
		}
		cancel()
		<-ended
	}
}

// namespaceWriter is a writer of the current store.
type namespaceWriter struct {
	n      *Namespace
	of     *Store
	writer *writer
}

// NewWriter returns a writer for one goroutine. It writes to the current store.
func (n *Namespace) NewWriter() store.Writer { return &namespaceWriter{n: n} }

// Apply applies a batch. Ranges that were claimed with another number of shards are marked Behind.
func (w *namespaceWriter) Apply(ctx context.Context, b *state.Batch) error {
	return w.n.do(ctx, func(s *Store) error {
		if w.of != s {
			w.of, w.writer = s, s.newWriter()
		}
		for i := range b.Ranges {
			if len(b.Ranges[i].Progress) != s.Shards() {
				b.Ranges[i].Behind = true
			}
		}
		return w.writer.Apply(ctx, b)
	})
}

// Place calls the current store. It refuses placements that were made for another number of shards.
func (n *Namespace) Place(ctx context.Context, placements ...state.Placement) (int, error) {
	return with(ctx, n, func(s *Store) (int, error) {
		for i := range placements {
			if len(placements[i].From) != s.Shards() {
				return 0, errSpread
			}
		}
		return s.Place(ctx, placements...)
	})
}

// ReadReplica calls the current store.
func (n *Namespace) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) (states []state.WindowState, freshness state.Freshness, err error) {
	err = n.do(ctx, func(s *Store) (err error) {
		states, freshness, err = s.ReadReplica(ctx, reads, pending)
		return err
	})
	return states, freshness, err
}

// Bind calls the current store.
func (n *Namespace) Bind(ctx context.Context, p *state.Plan) (plan *state.Plan, history *state.History, err error) {
	err = n.do(ctx, func(s *Store) (err error) {
		plan, history, err = s.Bind(ctx, p)
		return err
	})
	return plan, history, err
}

// Available also returns nil for a shard that no longer exists.
func (n *Namespace) Available(ctx context.Context, shard int) error {
	s := n.Store()
	if shard >= s.Shards() {
		return nil
	}
	return s.Available(ctx, shard)
}

// Read calls the current store.
func (n *Namespace) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	return n.ReadOverlay(ctx, reads, nil)
}

// ReadOverlay calls the current store.
func (n *Namespace) ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	return with(ctx, n, func(s *Store) ([]state.WindowState, error) { return s.ReadOverlay(ctx, reads, pending) })
}

// Recycle calls the current store.
func (n *Namespace) Recycle(states []state.WindowState) { n.Store().Recycle(states) }

// Clock calls the current store.
func (n *Namespace) Clock(ctx context.Context) (int64, error) {
	return with(ctx, n, func(s *Store) (int64, error) { return s.Clock(ctx) })
}

// Seal calls the current store.
func (n *Namespace) Seal(ctx context.Context) (state.Seal, error) {
	return with(ctx, n, func(s *Store) (state.Seal, error) { return s.Seal(ctx) })
}

// Secret calls the current store.
func (n *Namespace) Secret(ctx context.Context) (state.Secret, error) {
	return with(ctx, n, func(s *Store) (state.Secret, error) { return s.Secret(ctx) })
}

// Inspect calls the current store.
func (n *Namespace) Inspect(ctx context.Context, series *state.Series, entity string) (packed.Held, error) {
	return with(ctx, n, func(s *Store) (packed.Held, error) { return s.Inspect(ctx, series, entity) })
}

// ShardProgress calls the current store.
func (n *Namespace) ShardProgress(ctx context.Context, shard int) (*progress.Record, error) {
	return with(ctx, n, func(s *Store) (*progress.Record, error) { return s.ShardProgress(ctx, shard) })
}

// History calls the current store.
func (n *Namespace) History(ctx context.Context) (*state.History, error) {
	return with(ctx, n, func(s *Store) (*state.History, error) { return s.History(ctx) })
}

// Busiest calls the current store.
func (n *Namespace) Busiest(ctx context.Context) ([]state.Busiest, error) {
	return n.Store().Busiest(ctx)
}

// PublishBusiest calls the current store.
func (n *Namespace) PublishBusiest(ctx context.Context, processor string, b state.Busiest) error {
	return n.Store().PublishBusiest(ctx, processor, b)
}

// Applied calls the current store.
func (n *Namespace) Applied(ctx context.Context, p state.Partition, offset int64, reads []state.Read) (bool, error) {
	return with(ctx, n, func(s *Store) (bool, error) { return s.Applied(ctx, p, offset, reads) })
}

// Snapshot calls the current store.
func (n *Namespace) Snapshot(ctx context.Context, reads []state.Read) (state.Snapshot, error) {
	return with(ctx, n, func(s *Store) (state.Snapshot, error) { return s.Snapshot(ctx, reads) })
}

// Progress calls the current store.
func (n *Namespace) Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error) {
	return with(ctx, n, func(s *Store) ([][]state.Position, error) { return s.Progress(ctx, partitions) })
}

// Log calls the current store.
func (n *Namespace) Log(ctx context.Context, tag string) (state.LogID, error) {
	return with(ctx, n, func(s *Store) (state.LogID, error) { return s.Log(ctx, tag) })
}

// Claim calls the current store.
func (n *Namespace) Claim(ctx context.Context, partitions []state.Partition, by state.Claimant) ([]state.Claim, error) {
	return with(ctx, n, func(s *Store) ([]state.Claim, error) { return s.Claim(ctx, partitions, by) })
}

// Gap calls the current store.
func (n *Namespace) Gap(ctx context.Context, p state.Partition, until int64) error {
	return n.do(ctx, func(s *Store) error { return s.Gap(ctx, p, until) })
}

// Register calls the current store.
func (n *Namespace) Register(ctx context.Context, r state.Registration) ([]state.Rival, error) {
	return n.Store().Register(ctx, r)
}

// Fills calls the current store.
func (n *Namespace) Fills(ctx context.Context, p *state.Plan) ([]*state.Fill, error) {
	return with(ctx, n, func(s *Store) ([]*state.Fill, error) { return s.Fills(ctx, p) })
}

// Fillings calls the current store.
func (n *Namespace) Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error) {
	return with(ctx, n, func(s *Store) ([][]state.Filling, error) { return s.Fillings(ctx, f, partitions) })
}

// StartFill calls the current store.
func (n *Namespace) StartFill(ctx context.Context, starts ...state.FillStart) error {
	return n.do(ctx, func(s *Store) error { return s.StartFill(ctx, starts...) })
}

// Archives calls the current store.
func (n *Namespace) Archives(ctx context.Context) ([]*state.Archive, error) {
	return n.Store().Archives(ctx)
}

// AddArchive calls the current store.
func (n *Namespace) AddArchive(ctx context.Context, draft *state.Archive) error {
	return n.Store().AddArchive(ctx, draft)
}

// BeginArchives calls the current store.
func (n *Namespace) BeginArchives(ctx context.Context, f *state.Fill, archives []*state.Archive) ([][]state.Position, error) {
	return with(ctx, n, func(s *Store) ([][]state.Position, error) { return s.BeginArchives(ctx, f, archives) })
}

// Shards calls the current store.
func (n *Namespace) Shards() int { return n.Store().Shards() }

// ShardOf calls the current store.
func (n *Namespace) ShardOf(u *state.EntityUpdate, shards int) int {
	return n.Store().ShardOf(u, shards)
}

// Create calls the current store.
func (n *Namespace) Create(ctx context.Context) error {
	err := n.do(ctx, func(s *Store) error { return s.Create(ctx) })
	n.applies.Store(err == nil)
	return err
}

// Adopt calls the current store.
func (n *Namespace) Adopt(ctx context.Context) error { return n.Store().Adopt(ctx) }

// CheckLayout calls the current store.
func (n *Namespace) CheckLayout(ctx context.Context) error {
	return n.do(ctx, func(s *Store) error { return s.CheckLayout(ctx) })
}

// CheckEviction calls the current store.
func (n *Namespace) CheckEviction(ctx context.Context) error { return n.Store().CheckEviction(ctx) }

// Ready calls the current store, and also reports that servers delete state.
func (n *Namespace) Ready(ctx context.Context) error {
	err := n.do(ctx, func(s *Store) error { return s.Ready(ctx) })
	if evicts := n.evicts.Load(); err == nil && evicts != nil {
		err = *evicts
	}
	return err
}

// AwaitReplicas calls the current store.
func (n *Namespace) AwaitReplicas(ctx context.Context, within time.Duration) ([]store.Copies, error) {
	return with(ctx, n, func(s *Store) ([]store.Copies, error) { return s.AwaitReplicas(ctx, within) })
}

// Greatest is that of the present store.
func (n *Namespace) Greatest(ctx context.Context, most int, patience time.Duration) (state.LongKeys, error) {
	return n.Store().Greatest(ctx, most, patience)
}

// CountKeys is that of the present store.
func (n *Namespace) CountKeys(ctx context.Context, most int64) (state.KeyCount, error) {
	return n.Store().CountKeys(ctx, most)
}

// Unavailable is that of the present store.
func (n *Namespace) Unavailable(ctx context.Context) []unavailableMaster {
	return n.Store().Unavailable(ctx)
}
