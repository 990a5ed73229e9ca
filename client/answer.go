package client

import (
	"encoding/json"
	"time"
)

// Status states how far a value can be relied on.
type Status string

// The statuses.
const (
	Present       Status = "PRESENT"         // computed from events in the window
	NullValue     Status = "NULL_VALUE"      // events in the window, but no value; or, if Capped, none of them is left
	NotFound      Status = "NOT_FOUND"       // no event in the window: the neutral value, such as 0 of a count
	Incomplete    Status = "INCOMPLETE"      // computed only from events since CompleteSince, for example because the feature is younger than its window
	LaterEvents   Status = "LATER_EVENTS"    // the moment lies in the past, and the value may count events after it
	NoEvent       Status = "NO_EVENT"        // the feature reads the event in hand, and the question has none: there is no value
	OutsideMaxAge Status = "OUTSIDE_MAX_AGE" // the moment lies further back than what is kept
	Damaged       Status = "DAMAGED"         // the entity's state cannot be read: there is no value
	Unavailable   Status = "UNAVAILABLE"     // the part of the store that holds the entity cannot be reached now, or a table is not read yet: there is no value
)

// known reports that a value covers its whole window and nothing after it.
func (s Status) known() bool { return s == Present || s == NullValue || s == NotFound }

// Statuses are all statuses that this client knows. A later server may send others.
var Statuses = []Status{Present, NullValue, NotFound, Incomplete, LaterEvents, NoEvent, OutsideMaxAge, Damaged, Unavailable}

// Answer is the answer to a question.
type Answer struct {
	At      time.Time
	Pending []Outcome // of the pending events, in their order
	Results []Result  // of the entities, in their order
	Applied bool      // whether the record of WaitFor is in the results
	// NothingApplied is true if Applied is false because no record of that partition was ever applied: perhaps there is no
	// such partition.
	NothingApplied bool
	// Replica is true if any of the state was read from a replica. Everything that its master had applied Staleness
	// before the read is in the results.
	Replica   bool
	Staleness time.Duration
	// TableLag is how long before the answer, at the most, all rows were known of the tables that features look up; nil if
	// they look up none, or none that the server has read yet.
	TableLag *time.Duration
}

// Outcome states how a pending event was read.
type Outcome struct {
	Stream       string
	Time         time.Time
	Deduplicated bool // it was not counted twice if it was already applied
	// Met is when the record that already has the event's ID was written, to the second: the earliest that the entities
	// asked about remember; zero if none does. They do not count the event again. If it is long before Time, the ID may
	// have been reused for another event.
	Met       time.Time
	Late      bool // it was too late for some features, which do not count it
	Uncounted bool // no answer counts it: it is of other entities than those asked about, or no feature selects it
}

// Result is the answer about one entity.
type Result struct {
	Entity   json.RawMessage    // as sent
	Features map[string]Feature // by their names
}

// Feature is the answer for one feature. Times are event times.
type Feature struct {
	Value
	Status Status
	// From and To are the first and the last millisecond that the value covers; From is zero for a
	// lifetime.
	From, To time.Time
	Exact    bool // exactly that of the events in the window
	// StandardError is the relative standard error of an estimate, and RelativeError bounds the relative error of a
	// value. FalsePositiveRate bounds the probability that a member is found that was not in the window. Uncertain is
	// by how much the true value may exceed the stated one: that many values occurred after the moment, and perhaps
	// also in the window.
	StandardError, RelativeError, FalsePositiveRate float64
	Uncertain                                       int64
	Capped                                          bool // the window had more than the feature keeps
	// LaterEvents is true if the value may count events after the moment, which lies in the past.
	LaterEvents bool
	// CompleteSince is since when the state holds all events; zero if it holds all of them. The
	// answer is complete unless its Status is Incomplete.
	CompleteSince time.Time
	// CompleteAt is the moment by which the feature is complete at the latest, without a backfill. It is zero if the
	// answer is not Incomplete, and if the moment is never or unknown.
	CompleteAt time.Time
	// Filled is the share of the events that an Incomplete answer lacks which a backfill has applied; nil if no
	// backfill is running.
	Filled *float64
	Oldest time.Time // with OutsideMaxAge, the oldest moment that can be asked for
	// Members are the answers about the members that the question names, in order. Value and Status are then empty, because
	// each member has its own: see Member.Known.
	Members []Member
}

// Known reports whether the value covers its whole window and nothing after it, so that a rule may use it: Status is
// Present, NullValue or NotFound. A feature with Members is known if all of them are.
//
// Never take what is not known for 0, which approves. Incomplete and LaterEvents come with a value, but events are missing
// from it, or too many in it. A known value may be null, such as an average without events: look at the last result of
// Int, Float and the like.
func (f Feature) Known() bool {
	for _, m := range f.Members {
		if !m.Known() {
			return false
		}
	}
	return len(f.Members) > 0 || f.Status.known()
}

// Member is the answer about one member. Each has a status of its own.
type Member struct {
	Member Value // as sent
	Met    Value // a bool; null if it is unknown
	Status Status
}

// Known reports whether it is known if the member occurred: Met is not null, and it covers the whole window and nothing
// after it. Look at this before Met: a member that is not known is not one that never occurred.
func (m Member) Known() bool { return m.Status.known() && !m.Met.IsNull() }

// UnmarshalJSON decodes a feature of the server's answer.
func (f *Feature) UnmarshalJSON(text []byte) error {
	var wire struct {
		Value             json.RawMessage
		Status            Status
		From              *int64
		To                int64
		Exact             bool
		StandardError     float64 `json:"standard_error"`
		RelativeError     float64 `json:"relative_error"`
		FalsePositiveRate float64 `json:"false_positive_rate"`
		Uncertain         int64
		Capped            bool
		LaterEvents       bool   `json:"later_events"`
		CompleteSince     *int64 `json:"complete_since"`
		CompleteAt        *int64 `json:"complete_at"`
		Filled            *float64
		Oldest            *int64
		Members           []struct {
			Member json.RawMessage
			Value  json.RawMessage
			Status Status
		}
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	*f = Feature{
		Value: Value{wire.Value}, Status: wire.Status, From: moment(wire.From), To: moment(&wire.To), Exact: wire.Exact,
		StandardError: wire.StandardError, RelativeError: wire.RelativeError, FalsePositiveRate: wire.FalsePositiveRate, Uncertain: wire.Uncertain,
		Capped: wire.Capped, LaterEvents: wire.LaterEvents, CompleteSince: moment(wire.CompleteSince), CompleteAt: moment(wire.CompleteAt), Filled: wire.Filled, Oldest: moment(wire.Oldest),
	}
	for _, m := range wire.Members {
		f.Members = append(f.Members, Member{Value{m.Member}, Value{m.Value}, m.Status})
	}
	return nil
}

// UnmarshalJSON decodes the server's answer.
func (a *Answer) UnmarshalJSON(text []byte) error {
	var wire struct {
		At      int64
		Results []Result
		Waited  struct {
			Applied        bool
			NothingApplied bool `json:"nothing_applied"`
		}
		From    string `json:"read_from"`
		Stale   int64  `json:"staleness_ms"`
		Lag     *int64 `json:"table_lag_ms"`
		Pending []struct {
			Stream             string
			Time               int64
			Deduplicated, Late bool
			Met                *int64
			Uncounted          bool
		}
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	*a = Answer{At: moment(&wire.At), Results: wire.Results, Applied: wire.Waited.Applied, NothingApplied: wire.Waited.NothingApplied,
		Replica: wire.From == "replica", Staleness: time.Duration(wire.Stale) * time.Millisecond}
	if wire.Lag != nil {
		lag := time.Duration(*wire.Lag) * time.Millisecond
		a.TableLag = &lag
	}
	for _, p := range wire.Pending {
		a.Pending = append(a.Pending, Outcome{p.Stream, moment(&p.Time), p.Deduplicated, moment(p.Met), p.Late, p.Uncounted})
	}
	return nil
}

// moment converts milliseconds since 1970 to UTC; zero for nil.
func moment(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return time.UnixMilli(*ms).UTC()
}
