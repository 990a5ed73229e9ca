package state

import "time"

// Freshness says how old the state may be that was read. Its zero value is that
// of what masters hold, which is the newest there is.
type Freshness struct {
	Replica bool // some of it was read from a replica
	// Staleness is how long before the reading all that was applied by then is
	// sure to be in what was read, seen from the master.
	Staleness time.Duration
}

// With is the freshness of what was read together.
func (f Freshness) With(other Freshness) Freshness {
	return Freshness{f.Replica || other.Replica, max(f.Staleness, other.Staleness)}
}
