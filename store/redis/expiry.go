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

// defaultSlack is how much longer than asked for keys live, so that neither a late
// event, nor processors that were away for a while, nor a clock that is off meets
// an expired key.
const defaultSlack = time.Hour

// Slack sets how much longer than asked for keys live. Processors may be away for
// that long, and the answers of a lag that has grown by more say what may be missing.
// All processes of a namespace need the same.
func Slack(d time.Duration) Option { return func(s *Store) { s.slack = d } }

// expiry decides which keys of one shard need a new time to live. Every key lives
// an 8th of its time longer than asked for, so those that were given their time
// less than that ago need none: of busy ones, few writes pay for it. All writers of
// a store share one, for an entity's events come through several partitions. It
// serves whoever holds its lock. A map would be as fast (BenchmarkTimesToLive), but it would
// grow with the number of keys.
type expiry struct {
	sync.Mutex
	// places hold what was given to which key. A key may stand in either of two
	// that are beside each other, and takes that of the one whose time is longer
	// ago. A key that has lost its place is given time again: that costs a command.
	places []expiryEntry
	// generation is mixed into the hashes of keys: what was given before it changed
	// is of no key any more.
	generation uint64
}

// place is when a key was given its time to live, in milliseconds since 1970.
type expiryEntry struct {
	mixed uint64 // the key's hash and the generation
	given int64
}

// expiryPlaces is how many all shards have, about: they take 16 MB.
const expiryEntries = 1 << 20

// newExpiries makes one for each shard. The number of places is a power of two.
func newExpiries(shards int) []expiry {
	list := make([]expiry, shards)
	size := max(2, 1<<(bits.Len(uint(expiryEntries/shards))-1))
	for i := range list {
		list[i].places = make([]expiryEntry, size)
		list[i].generation = 1 // so that a place without a key matches none
	}
	return list
}

// forget makes all keys due: one that was to be given its time may not have been,
// and an older copy of the store has older times to live.
func (e *expiry) forget() {
	e.Lock()
	defer e.Unlock()
	e.generation++
}

// forgetLives makes all keys of a shard due that a plan has claimed: what they live for may
// be what another plan kept, which was less.
func (s *Store) forgetLives(shard int) {
	s.makeExpiries()
	s.expiry[shard].forget()
}

// makeExpiries makes what writers share.
func (s *Store) makeExpiries() { s.written.Do(func() { s.expiry = newExpiries(len(s.tags)) }) }

// foreverLooked is after how long a key that is kept for ever is made so again: another plan
// may have given it a time to live. An 8th of it is the time between, see due.
const foreverLooked = 8 * 30 * 60 * 1000

// renewed is for how long a key is kept as far as due is concerned, in ms.
func (k *stateKey) renewed() int64 { return cmp.Or(k.keep, foreverLooked) }

// due says whether the key with a hash is to be given its time to live now, in
// milliseconds since 1970, if it is kept that many milliseconds. The lock is held.
func (e *expiry) due(hash uint64, keep, now int64) bool {
	const odd = 0x9e3779b97f4a7c15 // spreads generations, and hashes of one shard over its places
	spare, mixed := keep/8, hash^e.generation*odd
	i := hash * odd >> (64 - bits.Len(uint(len(e.places)-1)))
	own, beside := &e.places[i], &e.places[i^1]
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
	// Where the clock was set back it cannot be told how long ago that was.
	if ago := now - own.given; own.given > 0 && 0 <= ago && ago < spare {
		return false
	}
	own.given = now
	return true
}

// lifetimes writes for how long the keys live: the different times, and for each key
// which of them is its own.
func (w *writer) lifetimes(keys []stateKey) {
	w.keeps = w.keeps[:0]
	of := w.lifeOf[:0]
	for i := range keys {
		keep := keys[i].keep
		n := slices.Index(w.keeps, keep)
		if n < 0 {
			n = len(w.keeps)
			w.keeps = append(w.keeps, keep)
		}
		of = binary.BigEndian.AppendUint16(of, uint16(n+1)) // a call has no more than callOps
	}
	w.num(int64(len(w.keeps)))
	for _, keep := range w.keeps {
		if keep == 0 {
			w.num(0)
		} else {
			w.num(keyspace.Lifetime(keep, w.store.slack))
		}
	}
	w.lifeOf = of
	w.arg(append(w.bytes, of...))
}
