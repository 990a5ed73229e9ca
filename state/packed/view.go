package packed

import (
	"cmp"
	"iter"
	"slices"

	"github.com/weir-stream/weir/state"
)

// View is the unpacked state of one key of an entity: the states of some series, or the totals of their windows. It
// answers reads and applies mutations. It is not safe for concurrent use. Its zero value is empty, and hashes values
// without a secret.
type View struct {
	Secret state.Secret // values are hashed with it
	Losses Losses       // of the key
	Err    error        // why the key cannot be read; all reads return it

	keyed state.Secret // that of the states
	parts []viewed
}

// viewed is a series of a view: its state, the totals of some windows, or both.
type viewed struct {
	tag    uint32
	series *state.Series
	stated bool
	state  State // if stated; nil once it cannot be reused
	totals totals
}

// Add adds a series with its state, and returns its index.
func (v *View) Add(s *state.Series) int {
	i := v.add(s)
	v.parts[i].stated = true
	return i
}

// AddTotals adds a series with totals (see HasTotals), and returns its index.
func (v *View) AddTotals(s *state.Series) int { return v.add(s) }

func (v *View) add(s *state.Series) int {
	i := v.find(s.Tag())
	if i < 0 {
		i = len(v.parts)
		v.parts = append(v.parts, viewed{tag: s.Tag(), series: s})
	}
	return i
}

// Clear removes all series.
func (v *View) Clear() { v.parts = nil }

// Begin makes the states, empty and with the secret, and removes the windows of totals.
func (v *View) Begin() {
	same := v.keyed == v.Secret
	v.keyed = v.Secret
	for i := range v.parts {
		p := &v.parts[i]
		p.totals.Reset(p.series)
		if p.stated && (p.state == nil || !same) {
			p.state = NewKeyed(p.series, v.Secret)
		}
	}
}

// Over adds a window of totals to series i, from one tile to another, inclusive.
func (v *View) Over(i int, first, last int64) { v.parts[i].totals.over(first, last) }

// Merge merges packed state of the series. It fails if that is damaged.
func (v *View) Merge(packed []byte) error {
	var found damage
	err := Sections(packed, func(tag uint32, body []byte) error {
		i := v.find(tag)
		if i < 0 {
			found.take(tag, body)
			_, err := v.Losses.Take(tag, body)
			return err
		}
		p := &v.parts[i]
		if p.stated {
			if err := p.state.Merge(body); err != nil {
				return err
			}
		}
		if p.totals.Empty() {
			return nil
		}
		return p.totals.Merge(body)
	})
	return cmp.Or(err, found.err(func(tag uint32) bool { return v.find(tag) >= 0 }))
}

// find returns the index of the series with a tag, -1 if the view lacks it.
func (v *View) find(tag uint32) int {
	for i := range v.parts {
		if v.parts[i].tag == tag {
			return i
		}
	}
	return -1
}

// Index returns the index of a series, -1 if the view lacks it.
func (v *View) Index(s *state.Series) int {
	if i := v.find(s.Tag()); i >= 0 && v.parts[i].series.Group == s.Group { // tags are unique only within a group
		return i
	}
	return -1
}

// Read answers a read of series i. The answer is valid until the view changes.
func (v *View) Read(i int, r *state.Read, answer *state.WindowState) {
	if v.Err != nil {
		*answer = state.WindowState{Err: v.Err}
		return
	}
	p := &v.parts[i]
	*answer = p.state.Read(r)
	answer.LostUntil = v.Losses.Of(p.tag)
}

// Total answers with the total of a window of series i: one bucket, or none.
func (v *View) Total(i, window int, answer *state.WindowState) {
	p := &v.parts[i]
	if all, met := p.totals.Of(window); met {
		answer.Buckets = append(answer.Buckets, all)
	}
	answer.LostUntil = v.Losses.Of(p.tag)
}

// Apply applies a mutation, unless the view lacks its series or could not be read.
func (v *View) Apply(mutation *state.Mutation) {
	if i := v.Index(mutation.Series); i >= 0 && v.Err == nil {
		v.parts[i].state.Apply(mutation)
	}
}

// Overlay applies the mutations of pending events to an entity. It skips events whose IDs the entity remembers, because
// they have been applied meanwhile, and adds them to pending.Met. ids is the view of the series of IDs, see IDSeries.
func (v *View) Overlay(pending *state.Batch, entity string, ids *View) {
	for i := range pending.Updates {
		u := &pending.Updates[i]
		if string(u.Entity) != entity {
			continue
		}
		if at, known := ids.met(pending.IDMutations(u)); known {
			pending.Met = append(pending.Met, state.Met{Update: i, At: at})
			continue
		}
		for j := u.From; j < u.To; j++ {
			if mutation := &pending.Mutations[j]; mutation.Series.Measure == state.RememberID {
				ids.Apply(mutation)
			} else {
				v.Apply(mutation)
			}
		}
	}
}

// met reports whether and when an event was already applied, given the mutations with its ID: any generation may know it.
func (v *View) met(ids iter.Seq[*state.Mutation]) (at int64, known bool) {
	for id := range ids {
		i := v.Index(id.Series)
		if i < 0 {
			continue
		}
		if t, met := v.parts[i].state.(*dedupSet).met(id); met && (!known || t < at) {
			at, known = t, true
		}
	}
	return at, known
}

// IDSeries appends the series of IDs that show which of the pending events were applied to an
// entity of a group. Entities of other groups may have the same text.
func IDSeries(list []*state.Series, pending *state.Batch, group, entity string) []*state.Series {
	for i := range pending.Updates {
		u := &pending.Updates[i]
		if string(u.Entity) != entity {
			continue
		}
		for id := range pending.IDMutations(u) {
			if id.Series.Group == group && !slices.Contains(list, id.Series) {
				list = append(list, id.Series)
			}
		}
	}
	return list
}

// AddCopy adds a series with a copy of a state; nil means an empty one.
func (v *View) AddCopy(s *state.Series, of State) {
	i := v.Add(s)
	v.Begin()
	if of == nil {
		return
	}
	if err := v.parts[i].state.Merge(of.Append(nil)); err != nil {
		panic(err) // it was packed on the same line
	}
}

// Copy returns a view of series i alone. The copy and the original change independently.
func (v *View) Copy(i int) *View {
	c := &View{Secret: v.Secret, Losses: v.Losses, Err: v.Err}
	p := &v.parts[i]
	if v.Err != nil {
		c.Add(p.series)
	} else {
		c.AddCopy(p.series, p.state)
	}
	return c
}

// Empty empties the states for reuse. The series stay.
func (v *View) Empty() {
	for i := range v.parts {
		if p := &v.parts[i]; p.state != nil && !emptyState(p.state) {
			p.state = nil
		}
	}
	v.Losses, v.Secret, v.Err = nil, state.Secret{}, nil
}
