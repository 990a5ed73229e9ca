// Package ignite keeps state in Apache Ignite: package values on a transactional cache.
//
// Each namespace is a cache. The keys of a shard are in one partition of it, so a step is a transaction in one node and its backups.
// Transactions are optimistic and serializable: one that has read what another one has changed is made again.
package ignite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/ignite/thin"
	"github.com/weir-stream/weir/store/values"
)

var _ values.Engine = (*engine)(nil)

// engine keeps the values of a namespace.
type engine struct {
	client *thin.Client
	cache  *thin.Cache
	create func(ctx context.Context) error // makes the cache
	hash   []byte                          // what hashes of entities are keyed with; nil for nothing

	makes    atomic.Bool // the process makes the namespace, so it makes the cache again if a part of it is lost
	remaking sync.Mutex

	ahead   atomic.Int64 // of the clock of a node, in ms before that of the process
	askedAt atomic.Int64 // when that was found out, in ns since 1970; 0 if never
	asking  sync.Mutex
}

// id returns the key of a value in the cache. Ignite's hash of the key is the number of the shard, and the hash decides on the
// partition. The rest is 95 bits of SHA-256 of what the key names. Keys of records come before all others.
func (e *engine) id(k values.Key) thin.UUID {
	switch {
	case k.Shard < 0:
		return thin.UUID{High: 1, Low: uint64(-k.Shard)}
	case k.Group == "":
		return thin.UUID{Low: uint64(k.Shard)}
	}
	named := make([]byte, 0, 128)
	named = append(append(named, e.hash...), k.Group...)
	named = append(append(named, 0), k.Entity...)
	sum := sha256.Sum256(named)
	high, low := binary.BigEndian.Uint64(sum[:])|1<<63, binary.BigEndian.Uint32(sum[8:])
	last := uint32(k.Shard) ^ uint32(high>>32) ^ low ^ uint32(high)
	return thin.UUID{High: high, Low: uint64(low)<<32 | uint64(last)}
}

// failed marks the error of a request about a key as a state.ErrUnavailable if the key's partition is lost, or the nodes are in
// different clusters.
func (e *engine) failed(ctx context.Context, key thin.UUID, err error) error {
	if _, split := errors.AsType[*thin.SplitError](err); !split && !thin.IsLost(err) {
		return err
	}
	if thin.IsLost(err) && e.makes.Load() {
		err = cmp.Or(e.remake(context.WithoutCancel(ctx), key), err)
	}
	return fmt.Errorf("%w: %w", state.ErrUnavailable, err)
}

// remake makes the cache again, empty, if the partition of a key is lost, and no node will bring it back from its disk: some node may
// have a part of its values, as after an interrupted copy, so the state is read again from the log. Ignite has no request that
// empties one partition.
func (e *engine) remake(ctx context.Context, key thin.UUID) error {
	if !e.remaking.TryLock() {
		return nil
	}
	defer e.remaking.Unlock()
	if _, err := e.cache.GetAll(ctx, []thin.UUID{key}); !thin.IsLost(err) { // another process was faster
		return nil
	}
	durable, err := e.cache.Durable(ctx)
	if err == nil && !durable {
		err = e.cache.Destroy(ctx)
	}
	if err != nil || durable {
		return err
	}
	return e.create(ctx)
}

func (e *engine) Read(ctx context.Context, keys []values.Key) []values.Value {
	e.learnClock(ctx)
	found := make([]values.Value, len(keys))
	type share struct {
		of  []int
		ids []thin.UUID
	}
	shares := map[thin.UUID]*share{} // by node
	for i, k := range keys {
		id := e.id(k)
		node := e.cache.Owner(ctx, id)
		if shares[node] == nil {
			shares[node] = &share{}
		}
		shares[node].of, shares[node].ids = append(shares[node].of, i), append(shares[node].ids, id)
	}
	var reading sync.WaitGroup
	for _, s := range shares {
		reading.Go(func() { e.readTogether(ctx, s.of, s.ids, found) })
	}
	reading.Wait()
	return found
}

// readTogether reads some of the values that are to be found. If a partition is lost, each is read alone.
func (e *engine) readTogether(ctx context.Context, of []int, ids []thin.UUID, found []values.Value) {
	held, err := e.cache.GetAll(ctx, ids)
	if thin.IsLost(err) && len(of) > 1 {
		for i := range of {
			e.readTogether(ctx, of[i:i+1], ids[i:i+1], found)
		}
		return
	}
	if isNoCache(err) {
		return
	}
	err = e.failed(ctx, ids[0], err)
	for i, at := range of {
		if found[at].Err = err; err == nil {
			found[at].Bytes = held[i]
		}
	}
}

func (e *engine) Update(ctx context.Context, shard int, keys []values.Key, change func([][]byte) []values.Write) error {
	e.learnClock(ctx)
	order := make([]int, len(keys))
	ids := make([]thin.UUID, len(keys))
	for i, k := range keys {
		order[i], ids[i] = i, e.id(k)
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ids[a].High, ids[b].High), cmp.Compare(ids[a].Low, ids[b].Low))
	})
	sorted := make([]thin.UUID, len(keys))
	for i, at := range order {
		sorted[i] = ids[at]
	}
	update := func(tx *thin.Tx, found [][]byte) (bool, error) {
		held := make([][]byte, len(keys))
		for i, at := range order {
			held[at] = found[i]
		}
		writes := change(held)
		for keep, entries := range e.byLifetime(writes) {
			if err := tx.PutAll(ctx, entries, keep); err != nil {
				return false, err
			}
		}
		return len(writes) > 0, nil
	}
	return e.retried(ctx, sorted, update)
}

// emptiedAtOnce is how many values a transaction removes.
const emptiedAtOnce = 500

var errBegun = errors.New("the shard has begun")

func (e *engine) Empty(ctx context.Context, shard int, begun func(record []byte) bool) error {
	record := e.id(values.Key{Shard: shard})
	var some []thin.UUID
	remove := func() error {
		err := e.retried(ctx, []thin.UUID{record}, func(tx *thin.Tx, found [][]byte) (bool, error) {
			if begun(found[0]) {
				return false, errBegun
			}
			return true, tx.RemoveAll(ctx, some)
		})
		some = some[:0]
		return err
	}
	err := e.cache.Scan(ctx, record.Partition(), func(entry thin.Entry) error {
		if isRecord(entry.Key) {
			return nil
		}
		if some = append(some, entry.Key); len(some) < emptiedAtOnce {
			return nil
		}
		return remove()
	})
	if err == nil && len(some) > 0 {
		err = remove()
	}
	if errors.Is(err, errBegun) {
		return nil
	}
	return e.failed(ctx, record, err)
}

// isRecord reports whether a key is that of a record, see id.
func isRecord(k thin.UUID) bool { return k.High>>63 == 0 }

// retried calls inTransaction until no other process has changed one of the values meanwhile. It makes the cache if
// there is none: all nodes were started again, and keep nothing over that.
func (e *engine) retried(ctx context.Context, ids []thin.UUID, do func(tx *thin.Tx, found [][]byte) (commit bool, err error)) error {
	for attempt := range maxAttempts {
		err := e.inTransaction(ctx, ids, do)
		switch {
		case isNoCache(err) && attempt == 0:
			if err := e.create(ctx); err != nil {
				return err
			}
		case isConflict(err):
			// Another process goes on, so all do in the end.
		default:
			return e.failed(ctx, ids[0], err)
		}
	}
	return errConflicts
}

// maxAttempts is how often the values of an update may change while it is made.
const maxAttempts = 100

var errConflicts = fmt.Errorf("other processes have changed the same values %d times", maxAttempts)

// isConflict reports whether a transaction was not made since another one has changed a value that it had read.
func isConflict(err error) bool {
	refused, ok := errors.AsType[*thin.Error](err)
	return ok && (strings.Contains(refused.Message, "read/write conflict") || strings.Contains(refused.Message, "lock conflict"))
}

// isNoCache reports whether an error is about a cache that does not exist.
func isNoCache(err error) bool {
	const noCache = 1000
	refused, ok := errors.AsType[*thin.Error](err)
	return ok && refused.Status == noCache
}

// byLifetime groups writes by how long they are kept.
func (e *engine) byLifetime(writes []values.Write) map[time.Duration][]thin.Entry {
	grouped := map[time.Duration][]thin.Entry{}
	for _, w := range writes {
		grouped[w.Keep] = append(grouped[w.Keep], thin.Entry{Key: e.id(w.Key), Value: w.Bytes})
	}
	return grouped
}

// inTransaction reads values, calls a function with them, and commits if it says so.
func (e *engine) inTransaction(ctx context.Context, ids []thin.UUID, do func(tx *thin.Tx, found [][]byte) (commit bool, err error)) error {
	tx, err := e.cache.Begin(ctx, ids[0])
	if err != nil {
		return err
	}
	found, err := tx.GetAll(ctx, ids)
	commit := false
	if err == nil {
		commit, err = do(tx, found)
	}
	if err != nil || !commit {
		// Where that fails, the server rolls the transaction back when its time is over, or when it notices that the
		// connection is lost.
		_ = tx.End(context.WithoutCancel(ctx), false)
		return err
	}
	return tx.End(ctx, true)
}

// clockFor is how long the difference between the clocks of a node and the process is used.
const clockFor = 10 * time.Second

// learnClock finds out the difference between the clocks of a node and the process, unless that was done a short time ago. While it
// fails, the last known one is used.
func (e *engine) learnClock(ctx context.Context) {
	if time.Now().UnixNano()-e.askedAt.Load() < clockFor.Nanoseconds() || !e.asking.TryLock() {
		return
	}
	defer e.asking.Unlock()
	at, within, err := e.client.Clock(ctx)
	if err != nil {
		return
	}
	ahead := at - time.Now().Add(-within/2).UnixMilli()
	if off := within.Milliseconds()/2 + 2; -off <= ahead && ahead <= off { // it cannot be told from none
		ahead = 0
	}
	e.ahead.Store(ahead)
	e.askedAt.Store(time.Now().UnixNano())
}

func (e *engine) Clock(int) int64 { return time.Now().UnixMilli() + e.ahead.Load() }

func (e *engine) Available(int) error { return e.Down() }

func (e *engine) Down() error {
	if err := e.client.Down(); err != nil {
		return fmt.Errorf("%w: %w", state.ErrUnavailable, err)
	}
	return nil
}
