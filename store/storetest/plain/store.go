// Package plain is a store in the memory of one process, for tests: package values on an engine of maps. So tests that run on it
// depend only on the contract.
package plain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/values"
)

var _ store.Store = (*Store)(nil)

// Store is a process's view of a namespace. It is safe for concurrent use.
type Store struct {
	*values.Store
	engine  *engine
	options values.Options
}

// slack is how much longer than needed state is held, see state.History.
const slack = time.Hour

// New returns an empty store with a number of shards.
func New(shards int) *Store { return NewInSteps(shards, 0) }

// NewInSteps returns an empty store that applies at most a number of mutations in a step; 0 for any number.
func NewInSteps(shards, mutations int) *Store {
	e := &engine{values: map[values.Key]held{}, hangs: make([]bool, shards), steps: endless}
	s := of(e, values.Options{
		Shards: shards, Mutations: mutations, Slack: slack, Seal: &seal,
		Now: func() time.Time { return time.Time{} }, // tests replay the past
	})
	if err := s.Create(context.Background()); err != nil {
		panic(err) // maps do not fail
	}
	return s
}

func of(e *engine, o values.Options) *Store { return &Store{values.New(e, o), e, o} }

// seal is one that all stores share.
var seal = state.NewSeal([]byte("plain"))

// engine keeps the values of one namespace.
type engine struct {
	mu     sync.Mutex // guards all that follows, so each call is one step
	values map[values.Key]held
	hangs  []bool // by shard

	steps int // see Interrupt

	passed atomic.Int64 // nanoseconds, see Pass
}

// held is a value that is kept.
type held struct {
	bytes []byte
	until time.Time // when it expires; zero for never
}

func (e *engine) now() time.Time { return time.Now().Add(time.Duration(e.passed.Load())) }

func (e *engine) read(k values.Key) []byte {
	h := e.values[k]
	if !h.until.IsZero() && !e.now().Before(h.until) {
		delete(e.values, k)
		return nil
	}
	return h.bytes
}

func (e *engine) Read(_ context.Context, keys []values.Key) []values.Value {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := make([]values.Value, len(keys))
	for i, k := range keys {
		found[i] = values.Value{Bytes: e.read(k), Err: e.err(k.Shard)}
	}
	return found
}

func (e *engine) Update(_ context.Context, shard int, keys []values.Key, change func(held [][]byte) []values.Write) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.err(shard); err != nil {
		return err
	}
	if len(keys) > 1 {
		if e.steps == 0 {
			return errInterrupted
		}
		e.steps--
	}
	found := make([][]byte, len(keys))
	for i, k := range keys {
		found[i] = e.read(k)
	}
	for _, w := range change(found) {
		h := held{bytes: w.Bytes}
		if w.Keep > 0 {
			h.until = e.now().Add(w.Keep)
		}
		e.values[w.Key] = h
	}
	return nil
}

func (e *engine) Empty(_ context.Context, shard int, begun func(record []byte) bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.err(shard); err != nil || begun(e.read(values.Key{Shard: shard})) {
		return err
	}
	maps.DeleteFunc(e.values, func(k values.Key, _ held) bool { return k.Shard == shard && k.Group != "" })
	return nil
}

func (e *engine) Clock(int) int64 { return e.now().UnixMilli() }

func (e *engine) Available(shard int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err(shard)
}

func (e *engine) Down() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for shard := range e.hangs {
		if !e.hangs[shard] {
			return nil
		}
	}
	return errHangs
}

// Why a shard, or a batch, cannot go on.
var (
	errHangs       = fmt.Errorf("the shard hangs: %w", state.ErrUnavailable)
	errInterrupted = errors.New("the batch was interrupted")
)

// err returns why a shard cannot be reached; nil if it can.
func (e *engine) err(shard int) error {
	if shard >= 0 && e.hangs[shard] {
		return errHangs
	}
	return nil
}
