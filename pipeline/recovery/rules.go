// Package recovery finds the offset from which a partition continues. It compares the progress in the store with the
// log of the brokers. If they do not belong to one history, the partition stops with a reason, until an operator
// decides.
package recovery

import (
	"time"

	"github.com/weir-stream/weir/store"
)

// Start tells where to start reading the partitions of a topic that is new to the namespace. Partitions added to a
// topic later are read from their start.
type Start string

// The starts.
const (
	earliest Start = "earliest"
	Latest   Start = "latest"
)

// Rules are the settings that decide how a partition continues.
type Rules struct {
	Start Start // by default "earliest"
	// ContinueOnLoss makes a partition continue if records that were not applied are no longer in the log. By default
	// the partition stops.
	ContinueOnLoss bool
	// GracePeriod is how long a plan that lacks something that another plan kept has a partition before it is applied.
	// It is also how long a gap is recorded before the records after it are applied. It must be longer than
	// store.MaxHistoryAge; by default it is 100 ms longer.
	GracePeriod time.Duration
}

// WithDefaults sets unset fields.
func (r Rules) WithDefaults() Rules {
	if r.Start == "" {
		r.Start = earliest
	}
	if r.GracePeriod == 0 {
		r.GracePeriod = store.MaxHistoryAge + 100*time.Millisecond
	}
	return r
}
