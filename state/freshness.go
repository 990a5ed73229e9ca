package state

import "time"

// Freshness states how old the state in an answer may be. Its zero value means the newest state, read from masters.
type Freshness struct {
	Replica bool // some of it was read from a replica
	// Staleness bounds the age: the state has everything that the master had applied that long before the read.
	Staleness time.Duration
}

// With returns the freshness of two reads together.
func (f Freshness) With(other Freshness) Freshness {
	return Freshness{f.Replica || other.Replica, max(f.Staleness, other.Staleness)}
}
