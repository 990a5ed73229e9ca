package store

import "time"

// slack is how much longer than asked for keys live, in seconds, so that
// neither a late event nor a clock that is off meets an expired key.
const slack = 3600

// expiry decides which keys need a new time to live. Every key lives a 16th of
// its time longer than asked for, so those that were given their time less than
// that ago need none: of busy ones, few writes pay for it. Time is that of the
// clock and that of the records, whichever has gone further.
type expiry struct {
	now func() time.Time // the clock
	// When keys were given their time to live, by the hash of the key. Where one
	// map is full, it is the older one, and the one before is forgotten: to give
	// time again costs little.
	young, old map[uint64]given
}

// given is when a key was given its time to live, in milliseconds.
type given struct{ clock, record int64 }

// expiryMemory bounds each map, to some 9 MB.
const expiryMemory = 1 << 18

// forget makes all keys due: an older copy of the store has older times to live.
func (e *expiry) forget() { e.young, e.old = nil, nil }

// due is the time to live, in seconds, that a key is to be given with a batch
// whose newest record has a timestamp; 0 for none.
func (e *expiry) due(k *stateKey, record int64) int64 {
	keep := k.series.GroupKeep
	if keep == 0 {
		return 0
	}
	now, spare := given{e.now().UnixMilli(), record}, keep/16
	last, ok := e.young[k.hash]
	if !ok {
		last, ok = e.old[k.hash]
	}
	if ok && now.clock-last.clock < spare && now.record-last.record < spare {
		return 0
	}
	if len(e.young) >= expiryMemory || e.young == nil {
		e.young, e.old = make(map[uint64]given), e.young
	}
	e.young[k.hash] = now
	return (keep+spare)/1000 + slack
}
