package progress

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weir-stream/weir/state"
)

const (
	// UnusedFor is for how long no plan must have kept a series before its state may be dropped.
	UnusedFor = 24 * time.Hour
	// maxAway is how long a plan without a fill may have a partition before the fill is given up.
	maxAway = UnusedFor / 2
	// maxEpochs is the most ends of plan epochs of a topic in one record.
	maxEpochs = 64
)

// Claimant is a plan that claims partitions, with what follows from the plans and fills of the namespace.
type Claimant struct {
	version    string
	givesWayTo []string // versions of the plans that keep their partitions
	fills      []claimedFill
	known      map[string]bool // IDs of the fills
}

// claimedFill is a fill, from the view of the plan that claims.
type claimedFill struct {
	*state.Fill
	kept            state.Kept
	goesOn          string          // ID of the fill that continues with the part that the plan keeps; "" for none
	before, sharing map[string]bool // IDs of the fills that have all of its columns and more, and of those of the same series
	in              map[string]state.Kept
}

// NewClaimant returns the claimant of a plan among the known plans and fills of the namespace. If it is not among them, nothing is
// known of its fills.
func NewClaimant(version string, givesWayTo []string, known *state.Known) *Claimant {
	c := &Claimant{version: version, givesWayTo: givesWayTo, known: map[string]bool{}}
	p := known.Plans[version]
	if p == nil {
		return c
	}
	for _, f := range state.InOrder(known.Fills) {
		claimed := claimedFill{Fill: f, kept: f.In(p), before: map[string]bool{}, sharing: map[string]bool{}, in: map[string]state.Kept{}}
		if part := f.Part(p); part != nil {
			claimed.goesOn = part.ID
		}
		for version, other := range known.Plans {
			claimed.in[version] = f.In(other)
		}
		for id, other := range known.Fills {
			if f.PartOf(other) {
				claimed.before[id] = true
			}
			if other != f && f.Shares(other) {
				claimed.sharing[id] = true
			}
		}
		c.fills = append(c.fills, claimed)
		c.known[f.ID] = true
	}
	return c
}

// GivingWayTo returns the claimant with other plans that keep their partitions.
func (c *Claimant) GivingWayTo(versions []string) *Claimant {
	other := *c
	other.givesWayTo = versions
	return &other
}

// Claimed is a shard's part of a claim of a partition.
type Claimed struct {
	At      state.Position   // NoPosition if there is none, or another plan keeps it
	OwnedMs int64            // for how long the plan has had it, in ms; MaxInt64 if unknown
	Topic   *state.FirstSeen // nil if there is a position, or the shard has never seen the topic
	KeptBy  string           // version of the plan that keeps the partition; "" for none
}

// AddTo adds a shard's part to a claim.
func (c *Claimed) AddTo(claim *state.Claim, shard int) {
	claim.Progress[shard] = c.At
	claim.OwnedMs = min(claim.OwnedMs, c.OwnedMs)
	claim.Topic = cmp.Or(claim.Topic, c.Topic)
	claim.KeptBy = cmp.Or(c.KeptBy, claim.KeptBy)
}

// Claim gives partitions to a plan, from any other plan that has them. Batches of that plan that are still in flight then find no
// position and change nothing: they are fenced. It records where the other plan's epoch ended, and the spans that fills have to
// apply: all before the first claim of a plan with the fill's series, and from each claim of a plan without them to the next claim
// of a plan with them.
func (r *Record) Claim(partitions []state.Partition, by *Claimant) []Claimed {
	r.clamp(r.Clock + state.MaxAhead.Milliseconds())
	claims := make([]Claimed, len(partitions))
	ended := map[string]bool{}
	for i, p := range partitions {
		h := r.held[p]
		switch {
		case h == nil:
			r.feed(p, nil, by)
			claims[i] = Claimed{At: state.NoPosition, OwnedMs: math.MaxInt64}
			if seen, known := r.topics[p.Topic]; known {
				claims[i].Topic = &seen
			}
			continue
		case h.Plan != by.version && slices.Contains(by.givesWayTo, h.Plan):
			claims[i] = Claimed{At: state.NoPosition, OwnedMs: math.MaxInt64, KeptBy: h.Plan}
			continue
		}
		claims[i] = Claimed{At: h.At, OwnedMs: math.MaxInt64}
		if h.Plan == by.version {
			if since, known := r.since[p]; known {
				claims[i].OwnedMs = max(0, r.Clock-since)
			}
			continue
		}
		r.feed(p, h, by)
		r.end(p.Topic, h.Plan, r.Newest())
		ended[p.Topic] = true
		h.Plan = by.version
		r.stamp(p)
		claims[i].OwnedMs = 0
	}
	for topic := range ended {
		r.mergeEpochs(topic)
	}
	return claims
}

// stamp records that the partition is its plan's, or past its last gap, since now. What was decided about it depends on its
// positions.
func (r *Record) stamp(p state.Partition) {
	r.decided[p] = true
	r.since[p] = r.Clock
	r.stamped = append(r.stamped, sinceField(p))
}

// clamp lowers recorded timestamps that are greater than the latest credible one. They came from records with wrong dates, and
// would make features incomplete until then.
func (r *Record) clamp(latest int64) {
	if r.newest != nil {
		r.newest = new(min(*r.newest, latest))
	}
	for e, at := range r.ends {
		r.ends[e] = min(at, latest)
	}
}

// mergeEpochs keeps the newest ends of plan epochs of a topic and merges the others into a gap. The gap states that everything is
// missing until then, which never understates.
func (r *Record) mergeEpochs(topic string) {
	var ends []Epoch
	for e := range r.ends {
		if e.Topic == topic && e.Version != state.Gap {
			ends = append(ends, e)
		}
	}
	if len(ends) <= maxEpochs {
		return
	}
	slices.SortFunc(ends, func(a, b Epoch) int {
		return cmp.Or(cmp.Compare(r.ends[a], r.ends[b]), cmp.Compare(a.Version, b.Version))
	})
	for _, e := range ends[:len(ends)-maxEpochs] {
		r.end(topic, state.Gap, r.ends[e])
		delete(r.ends, e)
	}
}

// feed updates what the fills have to apply of a partition when a plan claims it. h is the plan that has it; nil if none.
func (r *Record) feed(p state.Partition, h *Holding, by *Claimant) {
	r.decided[p] = true
	skipped := map[string]bool{} // given up although no plan with them has had the partition
	for i := range by.fills {
		f := &by.fills[i]
		known := r.fillings[fillKey{f.ID, p}]
		if known != nil && !known.known {
			known = nil
		}
		switch {
		case h == nil && f.kept != state.KeptAll, known == nil && f.Columns[p.Topic] == nil, known != nil && known.broken:
			// It has nothing to fill of the partition, or was given up there.
		case known != nil && !known.isOpen() && h != nil && f.in[h.Plan] != state.KeptAll:
			// That plan has placed the partition after a plan with the fill had claimed it, so no claim has opened a span.
			known.abandon()
		case f.kept == state.KeptPart:
			if known != nil && f.goesOn != "" {
				r.fillings[fillKey{f.goesOn, p}] = known.copied()
			}
			skipped[f.ID] = known == nil
			r.filling(f.ID, p).abandon()
		case f.kept == state.KeptNone:
			if known != nil && !known.isOpen() {
				known.spans = append(known.spans, span{from: h.At.Offsets(), open: true, opened: r.Clock})
			}
		case known != nil:
			known.close(h, r.Clock)
		case r.fills(p, f.before, func(of string, other *filling) bool { return !skipped[of] && !other.broken }):
			// It continues as a part of that fill.
		case r.fills(p, f.sharing, func(of string, _ *filling) bool { return !skipped[of] }):
			r.filling(f.ID, p).abandon() // the other fill may have fed some of its columns
		case h == nil:
			*r.filling(f.ID, p) = filling{known: true, begun: true, since: state.MinTime, at: state.NoPosition} // the plan will apply all records itself
		case f.noneIn(h.Plan):
			*r.filling(f.ID, p) = filling{known: true, spans: []span{{unset: true, to: h.At.Offsets()}}, at: state.NoPosition}
		default:
			r.filling(f.ID, p).abandon()
		}
	}
	if h == nil {
		return
	}
	for k, f := range r.fillings {
		if k.partition == p && !by.known[k.fill] {
			f.abandon() // it is unknown whether the plan has its series
		}
	}
}

// noneIn reports whether the plan of a version is known to have none of the fill's series.
func (f *claimedFill) noneIn(version string) bool {
	kept, known := f.in[version]
	return known && kept == state.KeptNone
}

// fills reports whether the partition has one of some fills, by ID, of which something is true.
func (r *Record) fills(p state.Partition, ids map[string]bool, such func(id string, f *filling) bool) bool {
	for id := range ids {
		if f := r.fillings[fillKey{id, p}]; f != nil && such(id, f) {
			return true
		}
	}
	return false
}

// filling returns the progress of a fill with a partition, which it adds if it is new.
func (r *Record) filling(fill string, p state.Partition) *filling {
	k := fillKey{fill, p}
	if r.fillings[k] == nil {
		r.fillings[k] = &filling{at: state.NoPosition}
	}
	return r.fillings[k]
}

// close ends an open span, where a plan with the fill takes the partition from another. now is the time of the clock, in ms.
func (f *filling) close(h *Holding, now int64) {
	if !f.isOpen() {
		return
	}
	s := f.last()
	switch {
	case h == nil, now-s.opened > maxAway.Milliseconds(), !s.unset && s.from.Offset > h.At.Offset:
		f.abandon()
	case !s.unset && s.from == h.At.Offsets():
		f.spans = f.spans[:len(f.spans)-1]
	case f.at.Exists() && f.at.Offset > s.from.Offset:
		f.abandon() // the span began at slices that were behind others, of which more was filled
	default:
		s.open, s.opened, s.to = false, 0, h.At.Offsets()
		if f.begun && !f.at.Exists() {
			// Plans with the fill have applied everything before.
			f.at = state.Position{Offset: s.from.Offset, Epoch: -1, Log: h.At.Log}
		}
	}
}

// versions returns the versions of the plans in a record.
func (r *Record) versions(into map[string]bool) {
	for _, h := range r.held {
		into[h.Plan] = true
	}
	for e := range r.ends {
		into[e.Version] = true
	}
}

// Versions returns the versions of the plans that wrote the state of some shards.
func Versions(records []*Record) map[string]bool {
	versions := map[string]bool{}
	for _, r := range records {
		if r != nil {
			r.versions(versions)
		}
	}
	delete(versions, "")
	delete(versions, state.Gap)
	return versions
}

// Fills returns the IDs of the fills that some shard knows.
func Fills(records []*Record) map[string]bool {
	ids := map[string]bool{}
	for _, r := range records {
		if r == nil {
			continue
		}
		for k := range maps.Keys(r.fillings) {
			ids[k.fill] = true
		}
	}
	return ids
}
