package redisstore

import (
	"math/bits"
	"sync"
	"time"
)

// DefaultSlack is how much longer than asked for keys live, so that neither a late
// event, nor processors that were away for a while, nor a clock that is off meets
// an expired key.
const DefaultSlack = time.Hour

// Slack sets how much longer than asked for keys live. Processors may be away for
// that long, and the answers of a lag that has grown by more say what may be missing.
// All processes of a namespace need the same.
func Slack(d time.Duration) Option { return func(s *Store) { s.slack = d } }

// expiry decides which keys of one shard need a new time to live. Every key lives
// an 8th of its time longer than asked for, so those that were given their time
// less than that ago need none: of busy ones, few writes pay for it. All writers of
// a store share one, for an entity's events come through several partitions. It
// serves whoever holds its lock.
type expiry struct {
	sync.Mutex
	// places hold what was given to which key. A key may stand in either of two
	// that are beside each other, and takes that of the one whose time is longer
	// ago. A key that has lost its place is given time again: that costs a command.
	places []place
	// generation is mixed into the hashes of keys: what was given before it changed
	// is of no key any more.
	generation uint64
	slack      time.Duration
}

// place is when a key was given its time to live, in milliseconds since 1970.
type place struct {
	mixed uint64 // the key's hash and the generation
	given int64
}

// expiryPlaces is how many all shards have, about: they take 16 MB.
const expiryPlaces = 1 << 20

// newExpiries makes one for each shard. The number of places is a power of two.
func newExpiries(shards int, slack time.Duration) []expiry {
	list := make([]expiry, shards)
	size := max(2, 1<<(bits.Len(uint(expiryPlaces/shards))-1))
	for i := range list {
		list[i].places = make([]place, size)
		list[i].slack = slack
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

// due is the time to live, in seconds, that the key with a hash is to be given
// now, in milliseconds since 1970, if it is kept that many milliseconds; 0 for
// none. The lock is held.
func (e *expiry) due(hash uint64, keep, now int64) int64 {
	if keep == 0 {
		return 0
	}
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
		*own = place{mixed: mixed}
	}
	// Where the clock was set back it cannot be told how long ago that was.
	if ago := now - own.given; own.given > 0 && 0 <= ago && ago < spare {
		return 0
	}
	own.given = now
	return lifetime(keep, e.slack)
}

// lifetime is the time to live, in seconds, of a key that is kept so many milliseconds.
func lifetime(keep int64, slack time.Duration) int64 {
	const second = int64(time.Second / time.Millisecond)
	return (keep + keep/8 + slack.Milliseconds() + second - 1) / second
}
