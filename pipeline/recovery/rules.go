// Package recovery finds where a partition goes on: from the progress of the store and the log that the brokers have it
// judges whether that is one history. Where it is not, the partition stops for a reason, until an operator chooses.
package recovery

import (
	"time"

	"github.com/weir-stream/weir/store"
)

// Start is from where the partitions of a topic are read that the namespace has
// never seen. One that is added to a topic later is read from its start.
type Start string

// The starts.
const (
	earliest Start = "earliest"
	Latest   Start = "latest"
)

// Rules are the settings by which it is judged how a partition goes on.
type Rules struct {
	Start Start // by default Earliest
	// ContinueOnLoss goes on when records that were not applied are no longer
	// in the log. By default the partition stops.
	ContinueOnLoss bool
	// GracePeriod is how long a plan has a partition before it is applied, where it
	// lacks what another one kept, and how long a gap is marked before what lies behind
	// it is applied: longer than store.MaxHistoryAge; by default 100 ms longer.
	GracePeriod time.Duration
}

// WithDefaults sets what is not set.
func (r Rules) WithDefaults() Rules {
	if r.Start == "" {
		r.Start = earliest
	}
	if r.GracePeriod == 0 {
		r.GracePeriod = store.MaxHistoryAge + 100*time.Millisecond
	}
	return r
}
