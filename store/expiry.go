package store

import "time"

// slack is how much longer than asked for keys live, in seconds, so that
// neither a late event nor a clock that is off meets an expired key.
const slack = 3600

// expiry decides which keys need a new time to live. Every key lives an 8th of
// its time longer than asked for, so those that were given their time less than
// that ago need none: of busy ones, few writes pay for it. Time is that of the
// clock and that of the records, whichever has gone further.
type expiry struct {
	now func() time.Time // the clock
	// given has a place for each of many hashes of keys, and in it the key that
	// came last. One that is gone from its place is given time again: that costs
	// little. A place is one line of the CPU's cache; finding a key in a map of as
	// many took a seventh of all that a processor does.
	given []given
}

// given is when a key was given its time to live, in milliseconds by the clock
// and by the records.
type given struct {
	key           uint64
	clock, record int64
}

// expiryPlaces is a power of two; they take 6 MB.
const expiryPlaces = 1 << 18

// forget makes all keys due: an older copy of the store has older times to live.
func (e *expiry) forget() { clear(e.given) }

// due is the time to live, in seconds, that a key is to be given with a batch
// whose newest record has a timestamp; 0 for none.
func (e *expiry) due(k *stateKey, record int64) int64 {
	keep := k.series.GroupKeep
	if keep == 0 {
		return 0
	}
	if e.given == nil {
		e.given = make([]given, expiryPlaces)
	}
	now, spare := given{k.hash, e.now().UnixMilli(), record}, keep/8
	last := &e.given[k.hash%expiryPlaces]
	if last.key == now.key && now.clock-last.clock < spare && now.record-last.record < spare {
		return 0
	}
	*last = now
	return (keep+spare)/1000 + slack
}
