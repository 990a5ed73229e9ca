package redisstore

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

// defaultSlack is how much longer than needed keys live, so that late events, processors that were away for a while,
// and clock errors do not find expired keys.
const defaultSlack = time.Hour

// Slack sets how much longer than needed keys live. Processors may be away for that long; if the
// lag grows by more, answers say what may be missing. All processes of a namespace need the same
// setting.
func Slack(d time.Duration) Option { return func(s *Store) { s.slack = d } }

// expiry decides which keys of one shard need a new time to live. Every key lives an eighth of its time longer than
// needed, so a key whose time was set more recently than that needs no new one: few writes of busy keys set it. It also
// knows which keys are busy. All writers of a store share one, because an entity's events come through several
// partitions. It must be used under its lock. A map would be as fast (BenchmarkTimesToLive), but would grow with the
// number of keys.
type expiry struct {
	sync.Mutex
	// entries record when keys were given their time. A key may be in either of two neighbouring entries, and replaces
	// the older one. The time of a key that lost its entry is set again, which costs a command.
	entries []expiryEntry
	// generation is mixed into the hashes of keys: entries of earlier generations match no key.
	generation uint64
}

// expiryEntry records when a key was given its time to live, by the clock, and when it was last appended to, by the
// timestamps of records.
type expiryEntry struct {
	mixed    uint64 // the key's hash and the generation
	given    uint32 // in seconds since 1970, 0 for never
	appended uint32 // in milliseconds since 1970, modulo 2³²
}

// expiryEntries is about the number of entries over all shards: they take 16 MB.
const expiryEntries = 1 << 20

// newExpiries makes one for each shard. The number of entries is a power of two.
func newExpiries(shards int) []expiry {
	list := make([]expiry, shards)
	size := max(2, 1<<(bits.Len(uint(expiryEntries/shards))-1))
	for i := range list {
		list[i].entries = make([]expiryEntry, size)
		list[i].generation = 1 // so that an entry without a key matches none
	}
	return list
}

// forget makes all keys due: keys may not have received their times, and an older copy of the store
// has older ones.
func (e *expiry) forget() {
	e.Lock()
	defer e.Unlock()
	e.generation++
}

// makeExpiries makes what writers share.
func (s *Store) makeExpiries() { s.written.Do(func() { s.expiry = newExpiries(len(s.tags)) }) }

// foreverRenewal stands for the time to live of a key that is kept forever. An eighth of it is the interval after which
// the key is made persistent again, see append: another plan may have given it a time to live.
const foreverRenewal = 8 * 30 * 60 * 1000

// renewed returns the time for which append assumes that a key is kept, in ms.
func (k *stateKey) renewed() int64 { return cmp.Or(k.keep, foreverRenewal) }

// busyFor is how far in time, in milliseconds, two batches that append to a busy key may be from each other: the next one
// is expected soon. Two appends of the same batch say nothing, because a batch of a backlog may span days.
const busyFor = 2000

// append notes an append to the key with a hash that is kept for `keep` milliseconds, now by the clock and at the newest
// timestamp of the batch's records, in milliseconds since 1970. It reports whether the key needs a new time to live, and
// whether it is busy. The caller holds the lock.
func (e *expiry) append(hash uint64, keep, now, recordTime int64) (due, busy bool) {
	const odd = 0x9e3779b97f4a7c15 // spreads generations, and hashes of one shard over its entries
	spare, mixed := keep/8, hash^e.generation*odd
	i := hash * odd >> (64 - bits.Len(uint(len(e.entries)-1)))
	own, beside := &e.entries[i], &e.entries[i^1]
	switch mixed {
	case own.mixed:
	case beside.mixed:
		own = beside
	default:
		if beside.given < own.given {
			own = beside
		}
		*own = expiryEntry{mixed: mixed}
	}
	quiet := int32(uint32(recordTime) - own.appended)
	own.appended = uint32(recordTime)
	busy = quiet != 0 && -busyFor <= quiet && quiet <= busyFor
	// After the clock was set back, the age of an entry is unknown. It is less than a second more than the difference.
	if ago := now/1000 - int64(own.given); own.given > 0 && 0 <= ago && (ago+1)*1000 < spare {
		return false, busy
	}
	own.given = uint32(now / 1000)
	return true, busy
}

// findDue finds which keys of a call are due for a new time to live, and which are busy.
func (w *writer) findDue(e *expiry, keys []stateKey, recordTime int64) {
	w.due, w.busy = w.due[:0], w.busy[:0]
	e.Lock()
	defer e.Unlock()
	for i := range keys {
		// What is known of a key is known for how long it is kept: another plan, of earlier definitions, may have given it a
		// shorter time.
		hash := w.combiner.named(&keys[i]).hash ^ bits.RotateLeft64(uint64(keys[i].keep), 20)
		due, busy := e.append(hash, keys[i].renewed(), w.now, recordTime)
		if due {
			w.due = append(w.due, i+1)
		}
		w.busy = append(w.busy, busy)
	}
}

// addLifetimes writes the keys' times to live: the distinct times, and for each key the index of its time and whether
// it is busy.
func (w *writer) addLifetimes(keys []stateKey) {
	w.keeps = w.keeps[:0]
	of := w.lifetimeOf[:0]
	for i := range keys {
		keep := keys[i].keep
		n := slices.Index(w.keeps, keep)
		if n < 0 {
			n = len(w.keeps)
			w.keeps = append(w.keeps, keep)
		}
		number := uint16(n + 1) // no more distinct times than groups
		if w.busy[i] {
			number |= 1 << 15
		}
		of = binary.BigEndian.AppendUint16(of, number)
	}
	w.num(int64(len(w.keeps)))
	for _, keep := range w.keeps {
		if keep == 0 {
			w.num(0)
		} else {
			w.num(keyspace.Lifetime(keep, w.store.slack))
		}
	}
	w.lifetimeOf = of
	w.arg(append(w.bytes, of...))
}
