package recovery

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-stream/weir/state"
)

// A partition that must not continue is stopped, and checked again from time to time: it continues by itself once that
// is right, for example after an operator has placed it with `weir progress set`. These are the reasons; each is a
// label of the metric.

// stop is an error that stops a partition for a reason.
type stop interface {
	error
	StopReason() string
}

// ReasonOf returns the metric's label for an error, "error" if it has none.
func ReasonOf(err error) string {
	if s, ok := errors.AsType[stop](err); ok {
		return s.StopReason()
	}
	return "error"
}

// supersededError says that another group applies other definitions to the namespace, began later,
// and has the partition.
type supersededError struct {
	Partition state.Partition
	By        state.Rival
}

func (e *supersededError) Error() string {
	return fmt.Sprintf("consumer group %q applies other definitions (plan %s) to this namespace, began later (%s) and has claimed the partition: "+
		"stop one of the two deployments, or give it a namespace of its own; this one goes on by itself %v after the other was stopped, "+
		"and when it is restarted it takes its partitions back",
		e.By.Group, e.By.Version, e.By.Began.UTC().Format(time.RFC3339), state.RivalInUse)
}

// StopReason returns the metric's label.
func (*supersededError) StopReason() string { return "superseded" }

// lossError says that records were not applied and are no longer in the log.
type lossError struct {
	Partition state.Partition
	// Progress is the next offset to apply; the log holds From to To.
	Progress, From, To int64
}

func (e *lossError) Error() string {
	return fmt.Sprintf("offsets %d to %d (%d records) were not applied and are no longer in the log; to go on without them, "+
		"set kafka.on_data_loss to continue, or run: weir progress set %s --to start --yes",
		e.Progress, e.From-1, e.From-e.Progress, e.Partition)
}

// StopReason returns the metric's label.
func (*lossError) StopReason() string { return "loss" }

// otherLogError says that a topic is not the log that was applied.
type otherLogError struct {
	Partition state.Partition
	// Applied is the next offset to apply of the log Was; the log Is holds From to To.
	Applied  int64
	Was, Is  state.LogID
	From, To int64
}

func (e *otherLogError) Error() string {
	what := "the topic was deleted and recreated"
	if e.Was.Cluster != e.Is.Cluster {
		what = "this is another cluster"
	}
	if e.Was == (state.LogID{}) {
		what = "it is no longer known which log was applied"
	}
	there := fmt.Sprintf("there are offsets %d to %d", e.From, e.To-1)
	if e.From == e.To {
		there = "there is nothing yet"
	}
	return fmt.Sprintf("%s: up to offset %d was applied of %v, and now %s of %v; nothing of it is applied until you choose: "+
		"to keep the state and apply the new log from its start, run: weir progress set %s --to start --yes; "+
		"to start over from the new log alone, set another namespace",
		what, e.Applied, e.Was, there, e.Is, e.Partition.Topic)
}

// StopReason returns the metric's label.
func (*otherLogError) StopReason() string { return "other_log" }

// beyondEndError says that more was applied than the log holds: the leader is not up to date, or, if it does not
// support epochs, the log may have lost records.
type beyondEndError struct {
	Partition    state.Partition
	Applied, End int64
	// Verified means that the leader has what was applied.
	Verified bool
}

func (e *beyondEndError) Error() string {
	if e.Verified {
		return fmt.Sprintf("waiting for the leader: applied up to offset %d, and its high watermark is still at %d", e.Applied, e.End)
	}
	return fmt.Sprintf("applied up to offset %d, but the log ends at %d, and the broker does not report leader epochs: "+
		"if it stays so, the topic lost records or was recreated; to go on at its end, run: weir progress set %s --to end --again --yes",
		e.Applied, e.End, e.Partition)
}

// StopReason returns the metric's label.
func (*beyondEndError) StopReason() string { return "beyond_end" }

// staleLeaderError says that the brokers name a leader that is older than the records that were applied, as a broker
// does that is cut off from the others and does not know of an election.
type staleLeaderError struct {
	Partition      state.Partition
	Leader         int32 // the broker
	Epoch, Applied int32 // of that leader, and of the records that were applied
	// Named means that brokers report topic IDs: it is the topic that was applied.
	Named bool
}

func (e *staleLeaderError) Error() string {
	text := fmt.Sprintf("waiting for brokers that know the leader: they name broker %d with leader epoch %d, and it was applied under epoch %d; "+
		"if it stays so, look for a broker that is cut off from the controller", e.Leader, e.Epoch, e.Applied)
	if e.Named {
		return text
	}
	return text + fmt.Sprintf("; or the topic was deleted and recreated, which these brokers do not report: "+
		"to keep the state and apply the new log from its start, run: weir progress set %s --to start --again --yes", e.Partition)
}

// StopReason returns the metric's label.
func (*staleLeaderError) StopReason() string { return "stale_leader" }

// openTransactionError says that a partition was applied beyond its last stable offset, for example under an earlier
// isolation setting.
type openTransactionError struct {
	Partition            state.Partition
	Applied, Stable, End int64
}

func (e *openTransactionError) Error() string {
	return fmt.Sprintf("waiting for open transactions to end: applied up to offset %d, the last stable offset is %d and the log ends at %d",
		e.Applied, e.Stable, e.End)
}

// StopReason returns the metric's label.
func (*openTransactionError) StopReason() string { return "open_transaction" }
