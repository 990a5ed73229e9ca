// Package plain is a second store, for tests: the whole contract in the memory of one process, written as plainly as
// possible. So tests that run on it depend only on the contract.
package plain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/protocol"
)

var _ store.Store = (*Store)(nil)

// Store is a process's view of a namespace. It is safe for concurrent use.
type Store struct {
	*protocol.Protocol
	*namespace
}

// namespace is the state of one namespace.
type namespace struct {
	secret state.Secret

	mu        sync.Mutex // guards all that follows, so each call is one step
	shards    []*shard
	registers map[int]map[string]string // of the protocol: their fields
	busiest   map[string]published      // by processor

	passed time.Duration // see Pass
	steps  int           // see Interrupt
}

// key is a series of an entity. Entities of different groups may have the same text.
type key struct{ series, group, entity string }

func keyOf(s *state.Series, entity string) key { return key{s.ID, s.Group, entity} }

// held is the state of a series of an entity.
type held struct {
	packed.State
	of    *state.Series
	until time.Time // when it expires; zero for never
}

// slack is how much longer than needed state is held, see state.History.
const slack = time.Hour

// New returns an empty store with a number of shards.
func New(shards int) *Store {
	n := &namespace{
		secret: state.NewSecret(), busiest: map[string]published{}, steps: endless,
		registers: map[int]map[string]string{protocol.Plans: {}, protocol.Used: {}},
	}
	for range shards {
		n.shards = append(n.shards, newShard())
	}
	return of(n)
}

func of(n *namespace) *Store {
	s := &Store{namespace: n}
	s.Protocol = protocol.New(records{s}, s.shardNumber, slack, func() time.Time { return time.Time{} }) // tests replay the past
	return s
}

func (s *Store) now() time.Time { return time.Now().Add(s.passed) }

// Seal returns one that all stores share.
func (s *Store) Seal(context.Context) (state.Seal, error) { return state.NewSeal([]byte("plain")), nil }

// Create does nothing: the namespace is there.
func (s *Store) Create(context.Context) error { return nil }

// Shards returns the number of shards.
func (s *Store) Shards() int { return len(s.shards) }

// ShardOf returns the shard that an update is applied to.
func (s *Store) ShardOf(u *state.EntityUpdate, shards int) int { return state.Shard(u.Hash, shards) }

func (s *Store) shardNumber(entity string) int {
	return state.Shard(state.EntityHash([]byte(entity)), len(s.shards))
}

func (s *Store) shardOf(entity string) *shard { return s.shards[s.shardNumber(entity)] }

// Available returns an error for a shard that hangs.
func (s *Store) Available(_ context.Context, shard int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shards[shard].err()
}

// NewWriter returns a writer.
func (s *Store) NewWriter() store.Writer { return writer{s} }

type writer struct{ store *Store }

// Apply applies a batch, shard by shard.
func (w writer) Apply(_ context.Context, b *state.Batch) error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if err := w.store.allHang(); err != nil {
		return err
	}
	byShard := make([][]*state.EntityUpdate, len(w.store.shards))
	for i := range b.Updates {
		u := &b.Updates[i]
		shard := w.store.ShardOf(u, len(w.store.shards))
		byShard[shard] = append(byShard[shard], u)
	}
	for shard, updates := range byShard {
		if err := w.store.apply(b, shard, updates); err != nil {
			return err
		}
	}
	return nil
}

// apply applies the updates of one shard that it lacks, and moves its progress. If it is interrupted, it applies those of
// some slices.
func (s *Store) apply(b *state.Batch, shard int, updates []*state.EntityUpdate) error {
	wanted := make([]bool, len(b.Ranges))
	for _, u := range updates {
		r := &b.Ranges[u.Range]
		wanted[u.Range] = wanted[u.Range] || r.Changes(shard, &r.Progress[shard], u)
	}
	sh, moved := s.shards[shard], false
	at := make([]*state.Position, len(b.Ranges)) // nil where nothing is applied
	for i := range b.Ranges {
		switch r := &b.Ranges[i]; {
		case !r.Moves(shard) || !wanted[i] && !b.EveryShard:
		case sh.hangs:
			r.Lag(shard)
		default:
			at[i] = sh.meet(r, shard)
			moved = moved || at[i] != nil
		}
	}
	slices := state.ShardSlices
	if moved {
		slices = s.slices(at)
	}
	refused := map[key]bool{}
	for _, u := range updates {
		r := &b.Ranges[u.Range]
		if at[u.Range] == nil || !r.Changes(shard, &r.Progress[shard], u) || state.SliceOf(u.Hash) >= slices {
			continue
		}
		for i := u.From; i < u.To; i++ {
			s.mutate(sh, string(u.Entity), &b.Mutations[i], refused)
		}
	}
	if b.Refused += len(refused); len(refused) > 0 {
		b.Refusal = errSpoiled.Error()
	}
	for i, p := range at {
		if r := &b.Ranges[i]; p != nil && slices > 0 {
			if r.To > p.Offset {
				p.Epoch = max(p.Epoch, r.Epoch)
			}
			switch {
			case slices < state.ShardSlices && r.To > p.Offset:
				*p = p.WithAhead(r.To, slices)
			case r.To > p.Offset:
				*p = p.To(r.To)
			}
			r.Progress[shard] = *p
			sh.fields[progress.PositionField(r.Partition)] = p.String()
		}
	}
	if moved && slices > 0 {
		sh.pass(state.Believed(b.Now, s.now()), s.now().UnixMilli())
	}
	if slices < state.ShardSlices {
		return errInterrupted
	}
	return nil
}

var errSpoiled = errors.New("what is held was not written by Weir")

// Secret returns the secret with which values are hashed.
func (s *Store) Secret(context.Context) (state.Secret, error) { return s.secret, nil }

// mutate applies a mutation, unless its entity is spoiled.
func (s *Store) mutate(sh *shard, entity string, m *state.Mutation, refused map[key]bool) {
	k := keyOf(m.Series, entity)
	if group := (key{"", k.group, entity}); sh.spoiled[group] {
		refused[group] = true
		return
	}
	h := sh.state(k, s.now())
	if h == nil {
		h = &held{State: packed.NewKeyed(m.Series, s.secret), of: m.Series, until: s.now()}
		sh.states[k] = h
	}
	h.Apply(m)
	keep := m.Series.GroupKeep
	until := s.now().Add(time.Duration(keep+keep/8)*time.Millisecond + slack)
	switch {
	case keep == 0:
		h.until = time.Time{}
	case !h.until.IsZero() && until.After(h.until):
		h.until = until
	}
}

// state returns the state of a series of an entity, unless it has expired.
func (sh *shard) state(k key, now time.Time) *held {
	if h := sh.states[k]; h != nil && (h.until.IsZero() || now.Before(h.until)) {
		return h
	}
	delete(sh.states, k)
	return nil
}

// view returns a copy of the states of some series of an entity.
func (s *Store) view(entity string, series ...*state.Series) *packed.View {
	v, sh := &packed.View{Secret: s.secret}, s.shardOf(entity)
	for _, of := range series {
		k := keyOf(of, entity)
		switch h := sh.state(k, s.now()); {
		case sh.hangs:
			v.Err = errHangs
		case sh.spoiled[key{"", k.group, entity}]:
			v.Err = errSpoiled
		case h != nil:
			v.AddCopy(of, h.State)
			continue
		}
		v.AddCopy(of, nil)
	}
	return v
}

// Read answers all reads.
func (s *Store) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	return s.ReadOverlay(ctx, reads, &state.Batch{})
}

// ReadOverlay answers all reads as if a batch had just been applied.
func (s *Store) ReadOverlay(_ context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	if pending == nil {
		pending = &state.Batch{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := make([]state.WindowState, len(reads))
	for i := range reads {
		r := &reads[i]
		v := s.view(r.Entity, r.Series)
		if !r.Stored {
			v.Overlay(pending, r.Entity, s.view(r.Entity, packed.IDSeries(nil, pending, r.Series.Group, r.Entity)...))
		}
		v.Read(0, r, &answers[i])
	}
	return answers, s.allHang()
}

// ReadReplica is ReadOverlay: there are no replicas.
func (s *Store) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	answers, err := s.ReadOverlay(ctx, reads, pending)
	return answers, state.Freshness{}, err
}

// Recycle does nothing.
func (s *Store) Recycle([]state.WindowState) {}

// Why a shard, or a batch, cannot go on.
var (
	errHangs       = fmt.Errorf("the shard hangs: %w", state.ErrUnavailable)
	errInterrupted = errors.New("the batch was interrupted")
)

// err returns why the shard cannot be reached; nil if it can.
func (sh *shard) err() error {
	if sh.hangs {
		return errHangs
	}
	return nil
}

// allHang returns why no shard can be reached; nil if some can.
func (s *Store) allHang() error {
	for _, sh := range s.shards {
		if !sh.hangs {
			return nil
		}
	}
	return errHangs
}
