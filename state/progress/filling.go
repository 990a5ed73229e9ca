package progress

import (
	"errors"
	"slices"
	"strings"

	"github.com/weir-stream/weir/state"
)

// fillKey names what a fill has to apply of a partition.
type fillKey struct {
	fill      string // its ID
	partition state.Partition
}

// filling is what a fill has to apply of a partition, and how far it has come. Its text is "since;from-to,from-@ms": the time, in
// ms, from which it covers the partition, empty until its start is decided; and spans of offsets. The first has no "from" until
// then. The last may be open: a plan without the fill has the partition since that time of the clock. A third part, as the field
// "ahead" has it, says that the clock was ahead since then. The text "!" is that of a fill which was given up there: it is no
// longer known what it has to apply.
type filling struct {
	known  bool // it has a text
	broken bool
	begun  bool
	since  int64
	spans  []span
	ahead  state.Ahead
	at     state.Position
}

// span is the offsets between two positions, of which some slices may be ahead.
type span struct {
	unset    bool           // it has no from yet
	from, to state.Position // offsets only
	opened   int64          // when it began, in ms by the clock, if it is open
	open     bool
}

// backwards reports whether a slice would end before it begins.
func (s *span) backwards() bool {
	return !s.unset && !s.open && slices.ContainsFunc(state.RangesBetween(s.from, s.to), func(r state.OffsetRange) bool { return r.To < r.From })
}

const brokenText = "!"

var errNoFilling = errors.New("it does not say what is to be filled")

func (f *filling) String() string {
	switch {
	case !f.known:
		return ""
	case f.broken:
		return brokenText
	}
	var b []byte
	if f.begun {
		b = append(b, number(f.since)...)
	}
	b = append(b, ';')
	for i, s := range f.spans {
		if i > 0 {
			b = append(b, ',')
		}
		if !s.unset {
			b = s.from.AppendOffsets(b)
		}
		b = append(b, '-')
		if s.open {
			b = append(append(b, '@'), number(s.opened)...)
		} else {
			b = s.to.AppendOffsets(b)
		}
	}
	if f.ahead != (state.Ahead{}) {
		b = append(append(b, ';'), aheadText(f.ahead)...)
	}
	return string(b)
}

// parse reads what String returns.
func (f *filling) parse(text string) (err error) {
	f.known = true
	if text == brokenText {
		f.broken = true
		return nil
	}
	since, list, ok := strings.Cut(text, ";")
	if !ok {
		return errNoFilling
	}
	list, ahead, wasAhead := strings.Cut(list, ";")
	if wasAhead {
		if f.ahead, err = parseAhead(ahead); err != nil {
			return err
		}
	}
	if since != "" {
		f.begun = true
		if f.since, err = parseTime(since); err != nil {
			return err
		}
	}
	for text := range strings.SplitSeq(list, ",") {
		if text == "" {
			continue
		}
		var s span
		first, last, ok := strings.Cut(text, "-")
		fromOK, toOK := true, false
		if s.unset = first == ""; !s.unset {
			s.from, fromOK = state.ParseOffsets(first)
		}
		var opened string
		if opened, s.open = strings.CutPrefix(last, "@"); s.open {
			s.opened, err = parseTime(opened)
			toOK = err == nil
		} else {
			s.to, toOK = state.ParseOffsets(last)
		}
		if !ok || !fromOK || !toOK || s.backwards() {
			return errNoFilling
		}
		f.spans = append(f.spans, s)
	}
	return nil
}

// last returns the last span; nil if there is none.
func (f *filling) last() *span {
	if len(f.spans) == 0 {
		return nil
	}
	return &f.spans[len(f.spans)-1]
}

// isOpen reports whether a plan without the fill has the partition.
func (f *filling) isOpen() bool { return f.last() != nil && f.last().open }

// abandon gives up the fill of the partition: it is no longer known what it has to apply.
func (f *filling) abandon() { *f = filling{known: true, broken: true, at: state.NoPosition} }

// copied returns a copy for the fill that goes on with a part.
func (f *filling) copied() *filling {
	c := *f
	c.spans = slices.Clone(f.spans)
	return &c
}

// finished reports whether all spans are applied, and none is open.
func (f *filling) finished() bool {
	last := f.last()
	return last == nil || !last.open && f.at.Exists() && f.at.Offset >= last.to.Furthest()
}

// start sets the offset from which the fill applies the partition, and since when it covers it. If the offset is set already, only
// the time changes, to a later one.
func (f *filling) start(at *state.FillStart) {
	switch {
	case !f.known || f.broken:
	case f.begun:
		f.since = max(f.since, at.Since)
	case len(f.spans) > 0 && f.spans[0].unset:
		first := &f.spans[0]
		from := at.From
		if !first.open {
			from = min(from, first.to.Offset)
		}
		first.from, first.unset = state.Position{Offset: from}, false
		f.begun, f.since, f.at = true, at.Since, state.Position{Offset: from, Epoch: -1, Log: at.Log}
	}
}

// filling returns the progress of the fill, as callers see it.
func (f *filling) filling() state.Filling {
	seen := state.Filling{Known: f.known, Broken: f.broken, Begun: f.begun, Since: state.MinTime, At: state.NoPosition}
	if !f.known || f.broken {
		return seen
	}
	if f.begun {
		seen.Since = f.since
	}
	seen.At, seen.Ahead = f.at, f.ahead
	for _, s := range f.spans {
		to := s.to
		if s.open {
			to, seen.Opened = state.Position{Offset: state.MaxTime}, s.opened
		}
		seen.Ranges = append(seen.Ranges, state.RangesBetween(s.from, to)...)
	}
	return seen
}

// Filling returns the progress of a fill with a partition.
func (r *Record) Filling(f *state.Fill, p state.Partition) state.Filling {
	known := r.fillings[fillKey{f.ID, p}]
	if known == nil {
		return state.Filling{Since: state.MinTime, At: state.NoPosition}
	}
	return known.filling()
}

// FirstFilling returns the progress in a partition of the first of some fills with which a plan has taken it, preferably of one
// that was not given up there. A fill is filled in a partition as the first of itself and those before it; see state.Fill.Before.
func (r *Record) FirstFilling(fills []*state.Fill, p state.Partition) (f state.Filling) {
	for _, of := range fills {
		found := r.Filling(of, p)
		if found.Known && !found.Broken {
			return found
		}
		if !f.Known {
			f = found
		}
	}
	return f
}

// StartFill sets where the filling of partitions starts.
func (r *Record) StartFill(starts []state.FillStart) {
	for i := range starts {
		if f := r.fillings[fillKey{starts[i].Fill.ID, starts[i].Partition}]; f != nil {
			f.start(&starts[i])
		}
	}
}
