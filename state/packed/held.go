package packed

import "time"

// Held is the state of an entity in one group of series, as a store holds it.
type Held struct {
	Shard  int
	Key    string // the store's name of it
	Packed []byte // nil if there is none
	// TimeToLive is how much longer the key is kept; 0 means forever, and UnknownTime that the store cannot tell.
	TimeToLive time.Duration
	// Type says what the key has if something other than Weir has written it. It is empty otherwise.
	Type string
	// Parent is the key of the entity's parent, in which some of Packed is embedded. Empty if the
	// entity has none.
	Parent string
	// ParentDamage is why the part embedded there is unknown, nil if it is known.
	ParentDamage error
	// ParentLosses are the losses of the parent that concern the entity.
	ParentLosses Losses
	// Origin is what the store needs to change exactly this.
	Origin any
}

// UnknownTime is a time to live that the store cannot tell.
const UnknownTime time.Duration = -1
