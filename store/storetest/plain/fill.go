package plain

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weir-stream/weir/state"
)

// filling is the progress of a fill with a partition.
type filling struct {
	state.Filling
	of *state.Fill
	in state.Partition
}

// open reports whether a plan without the fill has the partition, so that more is left to fill.
func (f *filling) open() bool {
	return slices.ContainsFunc(f.Ranges, func(r state.OffsetRange) bool { return r.To == state.MaxTime })
}

// spoil gives up the fill: how much of it is applied is no longer known.
func (f *filling) spoil() {
	f.Filling = state.Filling{Known: true, Broken: true, At: state.NoPosition, Since: state.MinTime}
}

// feed updates all fills when the plan of a version takes a partition. o states how far the partition is applied; nil
// if not at all.
func (s *Store) feed(sh *shard, p state.Partition, o *ownership, version string) {
	plan := s.plans[version]
	for _, f := range sh.fillings {
		if f.in == p && o != nil && (plan == nil || s.fills[f.of.ID] == nil) {
			f.spoil() // it is unknown which of its series the plan feeds
		}
	}
	if plan == nil {
		return
	}
	skipped := map[*state.Fill]bool{} // given up although no plan with them has had the partition
	for _, fill := range state.InOrder(s.fills) {
		kept, known := fill.In(plan), sh.fillings[fill.Partition(p)]
		switch {
		case o == nil && kept != state.KeptAll, known == nil && fill.Columns[p.Topic] == nil, known != nil && known.Broken:
			// It has nothing to fill of the partition, or was given up there.
		case known != nil && !known.open() && !s.whole(fill, o):
			// That plan has placed the partition before a plan with the fill, which had claimed it, could: no range is open.
			known.spoil()
		case kept == state.KeptPart:
			if part := fill.Part(plan); part != nil && known != nil {
				goesOn := &filling{known.Filling, part, p}
				goesOn.Ranges = slices.Clone(known.Ranges)
				sh.fillings[part.Partition(p)] = goesOn
			}
			skipped[fill] = known == nil
			sh.filling(fill, p).spoil()
		case kept == state.KeptNone:
			if known != nil && !known.open() {
				known.Ranges = append(known.Ranges, state.RangesBetween(o.at, state.Position{Offset: state.MaxTime})...)
				known.Opened = s.now().UnixMilli()
			}
		case known == nil && sh.fills(p, func(f *filling) bool { return !f.Broken && fill.PartOf(f.of) }):
			// It continues as a part of the other fill.
		case known == nil && sh.fills(p, func(f *filling) bool { return !skipped[f.of] && fill.Shares(f.of) }):
			sh.filling(fill, p).spoil() // the other fill may have fed some of its columns
		case known == nil:
			s.begin(sh.filling(fill, p), o)
		case known.open():
			known.close(o, s.now())
		}
	}
}

// whole reports whether the plan that has a partition, if one has, is known to keep all of a fill.
func (s *Store) whole(fill *state.Fill, o *ownership) bool {
	return o == nil || s.plans[o.version] != nil && fill.In(s.plans[o.version]) == state.KeptAll
}

// fills reports whether the partition has a fill that satisfies such.
func (sh *shard) fills(p state.Partition, such func(*filling) bool) bool {
	for _, f := range sh.fillings {
		if f.in == p && such(f) {
			return true
		}
	}
	return false
}

// filling returns the progress of a fill with a partition, which it adds if it is new.
func (sh *shard) filling(fill *state.Fill, p state.Partition) *filling {
	name := fill.Partition(p)
	if sh.fillings[name] == nil {
		sh.fillings[name] = &filling{state.Filling{Known: true, At: state.NoPosition, Since: state.MinTime}, fill, p}
	}
	return sh.fillings[name]
}

// begin sets the records to fill when a plan with the fill first takes a partition: those that plans without it have
// applied.
func (s *Store) begin(f *filling, o *ownership) {
	switch {
	case o == nil:
		f.Begun = true // live events are all of it
	case s.plans[o.version] != nil && f.of.In(s.plans[o.version]) == state.KeptNone:
		f.Ranges = state.RangesBetween(state.Position{}, o.at)
	default:
		f.spoil()
	}
}

// maxAway is how long a plan without a fill may have a partition before the fill is given up: its series may have been
// dropped meanwhile.
const maxAway = 12 * time.Hour

// close ends the open ranges where a plan with the fill takes the partition again.
func (f *filling) close(o *ownership, now time.Time) {
	if now.Sub(time.UnixMilli(f.Opened)) > maxAway {
		f.spoil()
		return
	}
	var closed []state.OffsetRange
	for _, r := range f.Ranges {
		switch {
		case r.To != state.MaxTime:
			closed = append(closed, r)
		case o == nil || r.From > o.at.Furthest():
			f.spoil()
			return
		default:
			for _, part := range state.RangesBetween(state.Position{Offset: r.From}, o.at) {
				if part.Without |= r.Without; part.From >= part.To || part.Without == state.AllSlices {
					continue
				}
				if f.At.Offset > part.From {
					f.spoil() // these slices were behind others, of which more was filled
					return
				}
				closed = append(closed, part)
			}
		}
	}
	f.Ranges, f.Opened = closed, 0
}

// unplace gives up the fills of a partition that goes back, or continues in another log.
func (sh *shard) unplace(p state.Partition, from, to state.Position, log state.LogID) {
	if was := sh.logs[from.Log]; !was.Contradicts(log) && to.Furthest() >= from.Furthest() {
		return
	}
	for _, f := range sh.fillings {
		if f.in == p && !f.Done() {
			f.spoil()
		}
	}
}

// Fills returns the fills that a plan keeps completely.
func (s *Store) Fills(_ context.Context, p *state.Plan) (kept []*state.Fill, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.fills {
		if f.In(p) == state.KeptAll {
			kept = append(kept, f)
		}
	}
	slices.SortFunc(kept, func(a, b *state.Fill) int { return cmp.Compare(a.ID, b.ID) })
	return kept, nil
}

// Fillings reads the progress of a fill for each partition, by shard.
func (s *Store) Fillings(_ context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.hang(); err != nil {
		return nil, err
	}
	all := make([][]state.Filling, len(partitions))
	for i, p := range partitions {
		for _, sh := range s.shards {
			all[i] = append(all[i], sh.look(f.Partition(p)))
		}
	}
	return all, nil
}

// look returns a copy of the progress of a fill.
func (sh *shard) look(name state.Partition) state.Filling {
	f := sh.fillings[name]
	if f == nil {
		return state.Filling{At: state.NoPosition, Since: state.MinTime}
	}
	found := f.Filling
	found.Ranges = slices.Clone(f.Ranges)
	return found
}

// StartFill sets where the filling of partitions starts, or raises the moment since which they are
// covered.
func (s *Store) StartFill(_ context.Context, starts ...state.FillStart) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range starts {
		for _, sh := range s.shards {
			if f := sh.fillings[starts[i].Fill.Partition(starts[i].Partition)]; f != nil && !f.Broken && !sh.hangs {
				f.start(&starts[i])
			}
		}
	}
	return s.hang()
}

func (f *filling) start(at *state.FillStart) {
	if f.Begun {
		f.Since = max(f.Since, at.Since)
		return
	}
	from := at.From
	for _, r := range f.Ranges {
		from = min(from, r.To)
	}
	for i := range f.Ranges {
		if r := &f.Ranges[i]; r.From == 0 {
			r.From = from
		}
	}
	f.Begun, f.Since, f.At = true, at.Since, state.Position{Offset: from, Epoch: -1, Log: at.Log}
}

// fillEpochs returns the progress of the fills that some shard knows, over all shards.
func (s *Store) fillEpochs() (epochs []state.FillEpoch) {
	for _, f := range state.InOrder(s.fills) {
		if !slices.ContainsFunc(s.shards, func(sh *shard) bool { return sh.knows(f) }) {
			continue
		}
		for topic := range f.Columns {
			e := state.FillEpoch{Fill: f, Topic: topic, Whole: true, Since: state.MinTime}
			for _, sh := range s.shards {
				s.add(sh, &e, f.Before(s.fills))
			}
			if f.Cut != nil {
				s.addArchives(&e)
			}
			epochs = append(epochs, e)
		}
	}
	return epochs
}

func (sh *shard) knows(f *state.Fill) bool {
	for _, known := range sh.fillings {
		if known.of.ID == f.ID {
			return true
		}
	}
	return false
}

// add adds the progress of the shard to that of a fill. If no plan with the fill has taken the partition, it adds the
// progress of the fills before.
func (s *Store) add(sh *shard, e *state.FillEpoch, before []*state.Fill) {
	for p, o := range sh.owned {
		if p.Topic != e.Topic {
			continue
		}
		f := sh.look(e.Fill.Partition(p))
		for _, other := range before {
			if found := sh.look(other.Partition(p)); !f.Known || f.Broken && found.Known && !found.Broken {
				f = found
			}
		}
		filled, all := f.Share()
		e.Whole, e.Since = e.Whole && f.Done(), max(e.Since, f.Since)
		e.Broken = e.Broken || f.Broken || !f.Known && s.whole(e.Fill, o)
		e.Filled, e.All, e.Opened = e.Filled+filled, e.All+all, max(e.Opened, f.Opened)
	}
}
