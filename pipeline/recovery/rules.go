// Package recovery finds the offset from which a partition goes on. It compares the progress in the
// store with the log of the brokers. If they do not belong to one history, the partition stops with
// a reason, until an operator decides.
package recovery

import (
	"time"

	"github.com/weir-stream/weir/store"
)

// Start says where to start reading the partitions of a topic that the namespace has never seen.
// Partitions added to a topic later are read from their start.
type Start string

// The starts.
const (
	earliest Start = "earliest"
	Latest   Start = "latest"
)

// Rules are the settings that decide how a partition goes on.
type Rules struct {
	Start Start // by default Earliest
	// ContinueOnLoss goes on if records that were not applied are no longer in the log. By default
	// the partition stops.
	ContinueOnLoss bool
	// GracePeriod is how long a plan has a partition before it is applied, if it lacks something
	// that another one kept, and how long a gap is recorded before what follows it is applied. It
	// is longer than store.MaxHistoryAge; by default by 100 ms.
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
