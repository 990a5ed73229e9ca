package store

import "sync/atomic"

// slack is how much longer than asked for keys live, in seconds, so that
// neither a late event nor a clock that is off meets an expired key.
const slack = 3600

// expiry decides which keys need a new time to live. Every key lives an 8th of
// its time longer than asked for, so those that were given their time less than
// that ago need none: of busy ones, few writes pay for it. All writers of a store
// share one, for an entity's events come through several partitions.
type expiry struct {
	// places hold what was given to which key. A key may stand in either of two
	// that are beside each other, and takes that of the one whose time is longer
	// ago. A key that has lost its place is given time again: that costs a command.
	places []place
}

// place is when a key was given its time to live, in milliseconds since 1970, and
// the key's hash, from which that is taken by exclusive or: what two writers have
// mixed belongs to no key. The scheme is that of R. Hyatt and T. Mann, "A lockless
// transposition-table implementation for parallel search" (2002).
type place struct{ mixed, given atomic.Uint64 }

// expiryPlaces is a power of two; they take 16 MB.
const expiryPlaces = 1 << 20

func newExpiry() *expiry {
	return &expiry{places: make([]place, expiryPlaces)}
}

// forget makes all keys due: one that was to be given its time may not have been,
// and an older copy of the store has older times to live.
func (e *expiry) forget() {
	for i := range e.places {
		e.places[i].given.Store(0)
		e.places[i].mixed.Store(0)
	}
}

// due is the time to live, in seconds, that the key with a hash is to be given
// now, in milliseconds since 1970, if it is kept that many milliseconds; 0 for
// none.
func (e *expiry) due(hash uint64, keep, now int64) int64 {
	if keep == 0 {
		return 0
	}
	spare := keep / 8
	i := hash % expiryPlaces
	own, beside := &e.places[i], &e.places[i^1]
	given, givenBeside := own.given.Load(), beside.given.Load()
	switch hash {
	case own.mixed.Load() ^ given:
	case beside.mixed.Load() ^ givenBeside:
		own, given = beside, givenBeside
	default:
		if givenBeside < given {
			own = beside
		}
		given = 0
	}
	// Where the clock was set back it cannot be told how long ago that was.
	if ago := now - int64(given); 0 <= ago && ago < spare {
		return 0
	}
	own.given.Store(uint64(now))
	own.mixed.Store(hash ^ uint64(now))
	return lifetime(keep)
}

// lifetime is the time to live, in seconds, of a key that is kept so many milliseconds.
func lifetime(keep int64) int64 { return (keep+keep/8)/1000 + slack }
