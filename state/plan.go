package state

import (
	"math"
	"slices"
	"time"
)

// A plan is what processors keep of events under some definitions. Definitions
// change while events flow, and not everywhere at once; a history says which
// plans state has been written by, and so since when it holds all events.

// Retained is one thing that a feature needs of state: a series, or a column of a
// log, fed by the events of one topic.
type Retained struct {
	// Key names the column: the ID of its series first, then whatever else gives
	// what is kept its meaning.
	Key   string
	Topic string
	Retention
	Future int64 // how far an event's time may lie after its record's, in milliseconds
	Tile   int64 // of the series, in milliseconds
}

// Retention is how much is kept of a column.
type Retention struct {
	Keep int64 `json:"keep,omitempty"` // see Series; 0 is for ever
	Max  int   `json:"max,omitempty"`  // see Series; only where more than that is forgotten unseen
}

// covers says whether what is kept is at least what is wanted.
func (k Retention) covers(wanted Retention) bool {
	return k.Max >= wanted.Max && (k.Keep == 0 || wanted.Keep > 0 && k.Keep >= wanted.Keep)
}

// Plan is what one processor keeps.
type Plan struct {
	Version  string               `json:"-"` // a hash of the rest: letters, digits, '-', '_' and '.'
	Retained map[string]Retention `json:"units"`
	Topics   map[string]string    `json:"-"` // by column, the topic whose events feed it; not known of plans that were read
	// Generations are, by the ID of a series as it is defined, the numbers of its generations
	// that are kept; none where that is the first alone.
	Generations map[string][]int `json:"generations,omitempty"`
}

// Covers says whether everything that another plan keeps is kept by this one.
func (p *Plan) Covers(other *Plan) bool {
	for key, wanted := range other.Retained {
		if kept, ok := p.Retained[key]; !ok || !kept.covers(wanted) {
			return false
		}
	}
	return true
}

// Shortens says whether less is kept than another plan keeps of anything that both keep of
// the events of a topic.
func (p *Plan) Shortens(other *Plan, topic string) bool {
	for key, kept := range p.Retained {
		wanted, both := other.Retained[key]
		if of, known := p.Topics[key]; both && !(known && of != topic) && !kept.covers(wanted) {
			return true
		}
	}
	return false
}

// KeepsForEver says whether anything is kept for ever.
func (p *Plan) KeepsForEver() bool {
	for _, kept := range p.Retained {
		if kept.Keep == 0 {
			return true
		}
	}
	return false
}

// Series are the IDs of the series that the plan keeps, sorted.
func (p *Plan) Series() []string {
	var ids []string
	for key := range p.Retained {
		ids = append(ids, seriesOf(key))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// SeriesIDLength is the length of a series' ID.
const SeriesIDLength = 5

// The ends of what CompleteSince may say.
const (
	MinTime int64 = math.MinInt64 // all events there ever were
	MaxTime int64 = math.MaxInt64 // events are still applied that do not reach the state
)

// MaxAhead is how far ahead of the clock a record's timestamp is believed where
// it says until when a plan was applied. One record with a wrong timestamp must
// not keep features from being complete until its time comes. It is more than
// clocks of brokers, processors and Redis are apart: what is said to be complete
// must never be so too early.
const MaxAhead = 24 * time.Hour

// Believed is a record's timestamp, in milliseconds, but no more than MaxAhead
// beyond the clock.
func Believed(timestamp int64, clock time.Time) int64 {
	return min(timestamp, clock.Add(MaxAhead).UnixMilli())
}

// Gap is the version of a mark for records that no plan was applied to.
const Gap = "!"

// PlanEpoch says until when a plan was applied to the records of a topic.
type PlanEpoch struct {
	Topic, Version string
	// Last is the greatest timestamp of a record that the plan may have been
	// applied to, in milliseconds; MaxTime while it still is.
	Last int64
}

// History is which plans state has been written by.
type History struct {
	PlanEpochs []PlanEpoch
	Plans      map[string]*Plan // by version; a plan that is not known keeps nothing
	// Fills are those that are known, by fill and topic.
	Fills []FillEpoch
	// Missing is why it is not known by which plans the state was written that a
	// read looks at, nil where it is; nil itself where it is of all state.
	Missing func(*Read) error

	// Lag is the least time, in ms, by which the newest record applied was behind the
	// clock; nil where none was applied. State is pruned by the times of records, but
	// expires by the clock: where the lag grows, keys may expire too early.
	Lag *int64
	// Slack is how much longer than they are kept keys live, in ms.
	Slack int64
}

// HeldSince is the timestamp from which on the state that any record made has not
// expired at a moment of the clock, in ms, if state were kept for no time; MinTime
// where nothing can have expired. A record of a timestamp t was applied at t + Lag or
// later, and its key lives Slack and what it is kept for from then on.
func (h *History) HeldSince(now int64) int64 {
	if h == nil || h.Lag == nil {
		return MinTime
	}
	return now - *h.Lag - h.Slack
}

// Applied says whether any plan is applied to the records of a topic.
func (h *History) Applied(topic string) bool {
	return slices.ContainsFunc(h.PlanEpochs, func(m PlanEpoch) bool { return m.Topic == topic && m.Last == MaxTime })
}

// FillOf is the fill of a column, one that was not given up if there is one; nil for none.
func (h *History) FillOf(u *Retained) (of *FillEpoch) {
	for i := range h.Fills {
		if f := &h.Fills[i]; f.Topic == u.Topic && f.Fill.Has(u.Topic, u.Key) && (of == nil || of.Broken || f.Whole) {
			of = f
		}
	}
	return of
}

// CompleteSince is the event time, in milliseconds, from which on state holds
// all events that the retained columns need; MinTime and MaxTime apart. It may be later than
// need be, never earlier.
func (h *History) CompleteSince(retained []Retained) int64 {
	since := MinTime
	for i := range retained {
		since = max(since, h.completeSince(&retained[i]))
	}
	return since
}

func (h *History) completeSince(u *Retained) int64 {
	since, begun := MinTime, false
	fill := h.FillOf(u)
	filled := fill != nil && fill.Whole
	if filled {
		since = fill.Since
	}
	for _, m := range h.PlanEpochs {
		if m.Topic != u.Topic {
			continue
		}
		begun = begun || m.Last == MaxTime
		var kept Retention
		known := false
		if plan := h.Plans[m.Version]; plan != nil {
			kept, known = plan.Retained[u.Key]
		}
		if known && kept.covers(u.Retention) {
			continue
		}
		if m.Last == MaxTime {
			return MaxTime
		}
		if filled && !known && m.Version != Gap {
			continue // what that plan passed by is filled; it has not had a partition since, see Fill
		}
		last := m.Last + u.Future
		if known && u.Tile > 0 {
			// What stands in tiles that were begun by the plan may be dropped when
			// its own time is over.
			last = (FloorDiv(last, u.Tile)+1)*u.Tile - 1
		}
		since = max(since, last+1)
	}
	if !begun {
		return MaxTime
	}
	return since
}
