package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
)

// A plan lists the state that processors keep under some definitions. Definitions change while events flow, and not in
// all processors at once. The history says which plans wrote the state, and so since when it holds all events.

// Retained is one piece of state that a feature needs: a series, or a column of a log, as far as the events of one topic
// feed it.
type Retained struct {
	// Key identifies the column: the ID of its series, then everything else that its content depends on.
	Key   string
	Topic string
	Retention
	Tile int64 // of the series, in milliseconds
	Cut  *Cut  // of the series; nil for none
}

// Retention states how much of a column is kept.
type Retention struct {
	Keep int64 `json:"keep,omitempty"` // see Series; 0 is forever
	// Max is the cap on values or events; state with a lower cap is filled again where more is wanted. It is 0 if there
	// is none, and, in what a feature needs, if the state notes what it lacks: such an answer is capped, not
	// incomplete.
	Max int `json:"max,omitempty"`
}

// covers reports whether k keeps at least as much as is wanted.
func (k Retention) covers(wanted Retention) bool {
	return k.Max >= wanted.Max && (k.Keep == 0 || wanted.Keep > 0 && k.Keep >= wanted.Keep)
}

// and returns what keeps as much as k and another one.
func (k Retention) and(other Retention) Retention {
	both := Retention{Keep: max(k.Keep, other.Keep), Max: max(k.Max, other.Max)}
	if k.Keep == 0 || other.Keep == 0 {
		both.Keep = 0
	}
	return both
}

// Plan lists the state that a processor keeps under one set of definitions.
type Plan struct {
	Version  string               `json:"-"` // a hash of the rest: letters, digits, '-', '_' and '.'
	Retained map[string]Retention `json:"units"`
	Topics   map[string][]string  `json:"-"` // by column, the topics whose events feed it; not known for plans read from the store
	// Generations maps the ID of a series as defined to the generations that are kept; it has no
	// entry if only the first is.
	Generations map[string][]Generation `json:"generations,omitempty"`
	Cuts        map[string]Cut          `json:"cuts,omitempty"` // of the generations, by ID
	// Tiling says which series have the same content in tiles of other widths, by the ID of a series as defined; it has no
	// entry for a series with its own content.
	Tiling map[string]Tiling `json:"tiling,omitempty"`

	passing bool // see Passing
}

// Tiling is the width of a series' tiles, and what it shares with all series that differ from it in that alone.
type Tiling struct {
	Content string `json:"content"`         // a hash, the same for all of them
	Width   int64  `json:"width,omitempty"` // in milliseconds; 0: one tile forever
}

// MaxTiles bounds the tiles of one window, because every answer reads all of them.
const MaxTiles = 20_000

// Covers reports whether p keeps everything that the other plan keeps.
func (p *Plan) Covers(other *Plan) bool {
	for key, wanted := range other.Retained {
		if kept, ok := p.Retained[key]; !ok || !kept.covers(wanted) {
			return false
		}
	}
	return true
}

// Shortens reports whether p keeps less than the other plan of something that both keep of a topic's events.
func (p *Plan) Shortens(other *Plan, topic string) bool {
	for key, kept := range p.Retained {
		wanted, both := other.Retained[key]
		if of, known := p.Topics[key]; both && (!known || slices.Contains(of, topic)) && !kept.covers(wanted) {
			return true
		}
	}
	return false
}

// KeepsForever reports whether anything is kept forever.
func (p *Plan) KeepsForever() bool {
	for _, kept := range p.Retained {
		if kept.Keep == 0 {
			return true
		}
	}
	return false
}

// Series returns the IDs of the series that the plan keeps, sorted.
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

// The bounds of CompleteSince.
const (
	MinTime int64 = math.MinInt64 // all events
	MaxTime int64 = math.MaxInt64 // events are applied that do not reach the state
)

// MaxAhead is how far ahead of the clock a record's timestamp is believed when it says until when a plan was applied.
// One record with a wrong timestamp must not make features incomplete until that time comes. It exceeds the differences
// between the clocks of brokers, processors and Redis, because a feature must never be called complete too early.
const MaxAhead = 24 * time.Hour

// Believed returns a record's timestamp, in milliseconds, limited to MaxAhead after the clock.
func Believed(timestamp int64, clock time.Time) int64 {
	return min(timestamp, clock.Add(MaxAhead).UnixMilli())
}

// Gap is the version of an epoch in which records were skipped: no plan was applied to them.
const Gap = "!"

// PlanEpoch states until when a plan was applied to the records of a topic.
type PlanEpoch struct {
	Topic, Version string
	// Last is the greatest timestamp, in milliseconds, of a record that the plan may have been applied to; MaxTime
	// while it is applied.
	Last int64
}

// History lists which plans wrote the state.
type History struct {
	PlanEpochs []PlanEpoch
	Plans      map[string]*Plan // by version; an unknown plan keeps nothing
	// Fills are all known fills, by fill and topic.
	Fills []FillEpoch
	// Missing returns why it is unknown which plans wrote the state of a read, or nil if it is known. A nil function
	// means that it is known for all state.
	Missing func(*Read) error
	// Superseded reports whether state that is read now may have gone back behind the history, so that it has to be read again. A
	// nil function means that it cannot.
	Superseded func() bool
	// Servers says which run of which server each shard was read from, if the history is from Store.Bind and the server says
	// it; "" if not.
	Servers []string

	// Lag is the least time, in ms, between the newest applied record and the clock when it was applied; nil if none
	// was applied. State is pruned by the times of records, but expires by the clock: if the lag grows, keys may expire
	// too early.
	Lag *int64
	// Slack is how much longer keys live than their state is kept, in ms.
	Slack int64
	// Newest is the greatest timestamp of a record applied when the history was read, in ms, and Now the later of that and
	// the clock; 0 if unknown.
	Newest, Now int64
	// Clock is what the clocks of the servers showed when the history was read, in ms: the greatest. Keys expire by them.
	Clock int64
	// Ahead is how far clocks of servers were ahead before; zero for never. What fills have applied since is stated with them.
	Ahead Ahead
}

// Current reports whether state that was just read cannot have gone back behind the history; see Superseded.
func (h *History) Current() bool { return h == nil || h.Superseded == nil || !h.Superseded() }

// Unread is the run of a server that no server has: that of a shard that was never read.
const Unread = "?"

// Runs returns the runs of the servers of shards on which the history is based, "" for a server that does not say it; nil if they
// are unknown.
func (h *History) Runs(shards int) []string {
	switch {
	case h == nil || h.Servers == nil:
		return nil
	case len(h.Servers) != shards:
		return slices.Repeat([]string{Unread}, shards)
	default:
		return h.Servers
	}
}

// aged is more than the records' time advances, in ms, while a history is used: that is a second, in which processors that
// catch up apply records of minutes.
const aged = 5 * 60_000

// Ahead states that clocks of servers were ahead for a while, so that keys expired early.
type Ahead struct {
	Clock int64 // the greatest time that they have shown, in ms
	// Newest is the greatest timestamp, in ms, of a record that had been applied when that was last noticed. Keys of later
	// records live as long as they should.
	Newest int64
}

// And returns what may have expired by a or by another one.
func (a Ahead) And(other Ahead) Ahead {
	return Ahead{Clock: max(a.Clock, other.Clock), Newest: max(a.Newest, other.Newest)}
}

// spare is for how long the key of a record lives after the record's timestamp, at least, in ms: a record with timestamp t was
// applied at t + Lag or later, and its key lives from then on for as long as it is kept, plus Slack.
func (h *History) spare(keep int64) int64 { return *h.Lag + h.Slack + keep }

// unexpired returns the record timestamp, in ms, since which no state of a column has expired early; MinTime if none
// has. fill is that of the column, nil if there is none. What a fill has applied after clocks were ahead has not
// expired.
func (h *History) unexpired(r *Retained, fill *FillEpoch) int64 {
	ahead := h.Ahead
	if fill != nil {
		ahead = fill.Ahead
	}
	if ahead == (Ahead{}) || h.Lag == nil {
		return MinTime
	}
	keep := h.keptFor(r)
	if keep == 0 {
		return MinTime
	}
	return min(ahead.Clock-h.spare(keep), ahead.Newest+1)
}

// keptFor returns the least time, in ms, for which a plan that was applied keeps a column; 0 for ever, also if none has it.
func (h *History) keptFor(r *Retained) (keep int64) {
	for _, e := range h.PlanEpochs {
		if plan := h.Plans[e.Version]; e.Topic == r.Topic && plan != nil {
			if kept := plan.Retained[r.Key].Keep; kept > 0 && (keep == 0 || kept < keep) {
				keep = kept
			}
		}
	}
	return keep
}

// Remaining says since when all state remains: it was not pruned, and cannot have expired before that because it was
// applied late. The zero value says that all does.
type Remaining struct {
	history *History
	clock   int64
}

// Remaining returns what remains at a moment of the caller's clock, in ms.
func (h *History) Remaining(now int64) Remaining {
	if h == nil || h.Lag == nil {
		return Remaining{}
	}
	return Remaining{h, max(now, h.Clock)}
}

// Since returns the event time, in ms, since which all state of a series remains; MinTime if it is kept for ever. The newest record
// that was applied, of whatever partition, decides what is pruned. A key expires as a whole.
func (r Remaining) Since(s *Series) int64 {
	if r.history == nil {
		return MinTime
	}
	since := MinTime
	if s.Keep > 0 {
		since = s.Horizon(r.history.Newest) * s.Tile
	}
	if keep := cmp.Or(s.GroupKeep, s.Keep); keep > 0 {
		since = max(since, r.clock-r.history.spare(keep))
	}
	return since
}

// Applied reports whether any plan is applied to the records of a topic.
func (h *History) Applied(topic string) bool {
	return slices.ContainsFunc(h.PlanEpochs, func(e PlanEpoch) bool { return e.Topic == topic && e.Last == MaxTime })
}

// fillOf returns the fill of a column, preferably one that was not given up; nil if there is none.
func (h *History) fillOf(r *Retained) (of *FillEpoch) {
	for i := range h.Fills {
		if f := &h.Fills[i]; f.Topic == r.Topic && f.Fill.Has(r.Topic, r.Key) && (of == nil || of.Broken || f.Whole) {
			of = f
		}
	}
	return of
}

// CompleteSince returns the event time, in milliseconds, from which the state holds all events that the retained
// columns need, or MinTime or MaxTime. It may be later than necessary, never earlier. It grows with History.Now where a
// plan keeps a column for less than is needed.
func (h *History) CompleteSince(retained []Retained) int64 {
	since := MinTime
	for i := range retained {
		c := h.coverage(&retained[i])
		since = max(since, c.since, c.whole)
	}
	return since
}

// Filled returns the share of missing records that a backfill has applied: the least share of the columns that are
// being filled, 1 if none is.
func (h *History) Filled(retained []Retained) float64 {
	share := 1.0
	for i := range retained {
		if f := h.fillOf(&retained[i]); f != nil && !f.Done() && !f.Broken {
			share = min(share, f.share())
		}
	}
	return share
}

// coverage states what the state has of a column.
type coverage struct {
	since int64 // the event time, in ms, from which it has events; MaxTime while none reach it
	// whole is the event time from which it has all their values: values beyond a lower cap were dropped before.
	whole int64
	// begun is until when the first plan with it was applied, and plans the number of plans with it: of two columns that began
	// when no record was applied between, the earlier one has more.
	begun int64
	plans int
}

// noCoverage is that of a column that events do not reach.
var noCoverage = coverage{since: MaxTime, whole: MaxTime, begun: MaxTime}

// coverage returns what the state has of a column.
func (h *History) coverage(r *Retained) coverage { return h.coverageFrom(r, MaxTime) }

// coverageFrom is coverage if a plan with the column took over at a moment of the records' time from those without it that
// are now applied.
func (h *History) coverageFrom(r *Retained, moment int64) coverage {
	// live is since when plans have fed all events, and filled since when they are complete with those that were
	// filled; kept is since when complete state was kept.
	live, filled, kept, whole, begun, applied, plans := MinTime, MaxTime, MinTime, MinTime, MaxTime, false, 0
	fill := h.fillOf(r)
	if fill != nil && fill.Whole {
		filled = fill.Since
	}
	for _, e := range h.PlanEpochs {
		if e.Topic != r.Topic {
			continue
		}
		applied = applied || e.Last == MaxTime
		var has Retention
		known := false
		if plan := h.Plans[e.Version]; plan != nil {
			has, known = plan.Retained[r.Key]
		}
		if known {
			begun, plans = min(begun, e.Last), plans+1
		}
		switch {
		case known && has.covers(r.Retention):
		case known:
			after := h.after(e, r)
			if has.Max < r.Max {
				whole = max(whole, after)
			}
			if !has.covers(Retention{Keep: r.Keep}) {
				kept = max(kept, min(after, h.heldSince(has)))
			}
		case e.Last == MaxTime && moment == MaxTime:
			return noCoverage
		default:
			after := min(e.Last, moment) + 1
			live = max(live, after)
			if e.Version == Gap { // what a plan skipped is filled, and it has not had a partition since; see Fill
				filled = max(filled, after)
			}
		}
	}
	if !applied {
		return noCoverage
	}
	since := min(live, filled)
	if r.Cut != nil {
		since = fill.over(r.Cut, since)
	}
	since = max(since, h.unexpired(r, fill))
	return coverage{max(since, kept), whole, begun, plans}
}

// after returns the first event time that an epoch has not touched, in ms; MaxTime while its plan is applied. Tiles that the
// plan began may be dropped when their own time is over.
func (h *History) after(e PlanEpoch, r *Retained) int64 {
	switch {
	case e.Last == MaxTime:
		return MaxTime
	case r.Tile > 0:
		return (FloorDiv(e.Last, r.Tile) + 1) * r.Tile
	}
	return e.Last + 1
}

// heldSince returns the event time, in ms, since which a column is held that a plan keeps for less than is needed. State is
// pruned by the times of records, of which later ones may have come since Now.
func (h *History) heldSince(has Retention) int64 {
	if h.Now == 0 {
		return MaxTime // unknown
	}
	return h.Now + aged - has.Keep
}

// Known is what a namespace knows: all registered plans and fills, by version.
type Known struct {
	Plans    map[string]*Plan
	Fills    map[string]*Fill
	Archives []*Archive
	History  *History
	Now      int64 // the newest record's timestamp, in ms
}

// lost returns the versions of the plans that wrote state and are not known, sorted.
func (k *Known) lost() (versions []string) {
	for _, e := range k.History.PlanEpochs {
		if e.Version != Gap && e.Version != "" && k.Plans[e.Version] == nil {
			versions = append(versions, e.Version)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// unusedNumber returns the least number of a new generation that none of the lost plans has, nor one that was made when
// others were lost: 31 bits of a hash. All processes that have lost the same plans agree on it.
func unusedNumber(lost []string) int {
	sum := sha256.Sum256([]byte(strings.Join(lost, "\n")))
	return int(binary.BigEndian.Uint32(sum[:]) >> 1)
}
