package state

import "time"

// Freshness says how old the state may be that was read. Its zero value means the newest state,
// that of the masters.
type Freshness struct {
	Replica bool // some of it was read from a replica
	// Staleness bounds the age: everything that the master had applied that long before the read is
	// in what was read.
	Staleness time.Duration
}

// With is the freshness of both reads together.
func (f Freshness) With(other Freshness) Freshness {
	return Freshness{f.Replica || other.Replica, max(f.Staleness, other.Staleness)}
}
