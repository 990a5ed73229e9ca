package state

import "time"

// Registration records that a consumer group applies a plan. Within a group, Kafka's protocol decides which member has
// a partition. Two groups with different plans would take the partitions of one namespace from each other forever, so
// the group that began last gets them.
type Registration struct {
	Plan  *Plan
	Group string
	// Begins is true if a processor of the group has just begun with the plan. A processor that continues with it does
	// not take back partitions that another group has taken since.
	Begins bool
	At     time.Time // zero for now, by the store's clock
}

// Rival is a group that began later, with another plan.
type Rival struct {
	Group, Version string
	Began          time.Time
}

// RivalInUse is how long after its last registration a plan takes precedence over those that began
// earlier.
const RivalInUse = 3 * time.Minute
