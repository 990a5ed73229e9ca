package values

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store"
)

// writer applies batches, all shards at once.
type writer struct {
	store   *Store
	groups  groups
	garbage garbage
}

// NewWriter returns a writer for one goroutine.
func (s *Store) NewWriter() store.Writer { return &writer{store: s} }

// Apply applies a batch. A shard's share takes a step, or several if there are many mutations: each then applies those of some
// slices, and until the last one the positions say which slices are ahead.
//
// For each range a step compares the position that it finds with the one from which the batch starts:
//
//	equal          applied, and the position moved
//	greater        applied before, by a request that was sent twice or by another owner of the partition: only what comes after
//	               is applied
//	less, or none  the store went back in time: the range is marked Behind
//	of another     the partition was placed in another log, or after a truncation: the range is marked Behind
//	log or epoch
//
// If some shards cannot be reached while others can, they are marked Lagging.
func (w *writer) Apply(ctx context.Context, b *state.Batch) error {
	secret, err := w.store.Secret(ctx)
	if err != nil {
		return err
	}
	w.groups.learn(b.Series)
	w.garbage.learn(ctx, w.store)
	shares := make([]*share, w.store.options.Shards)
	for shard := range shares {
		shares[shard] = &share{writer: w, batch: b, shard: shard, secret: secret}
	}
	for i := range b.Updates {
		u := &b.Updates[i]
		s := shares[w.store.ShardOf(u, len(shares))]
		s.updates = append(s.updates, u)
	}
	var applying sync.WaitGroup
	for _, s := range shares {
		if s.begin() {
			applying.Go(func() { s.err = s.apply(ctx) })
		}
	}
	applying.Wait()
	if err = w.confirm(b, shares); errors.Is(err, errSecret) {
		w.store.secret.Store(nil) // it is read again
	}
	return err
}

var errSecret = errors.New("the state was lost, and is written with another secret now")

// confirm takes over what became of the shares.
func (w *writer) confirm(b *state.Batch, shares []*share) (err error) {
	var away error
	reached := false
	for _, s := range shares {
		b.Calls += s.steps
		b.CutKeys += s.cut
		b.GreatestKey = max(b.GreatestKey, s.greatest)
		if b.Refused += len(s.refused); len(s.refused) > 0 && b.Refusal == "" {
			b.Refusal = s.refusal
		}
		for i := range s.at {
			r := &b.Ranges[i]
			r.Behind = r.Behind || s.behind[i]
			if s.moves[i] {
				r.Progress[s.shard] = s.at[i]
			}
		}
		switch {
		case errors.Is(s.err, state.ErrUnavailable):
			away = cmp.Or(away, s.err)
		case s.err != nil:
			err = cmp.Or(err, s.err)
		case s.steps > 0:
			reached = true
		}
	}
	if err == nil && away != nil && !reached && w.store.engine.Down() != nil {
		err = away
	}
	if err != nil {
		return err
	}
	for _, s := range shares {
		for i := range s.moves {
			if s.err != nil && s.moves[i] {
				b.Ranges[i].Lag(s.shard)
			}
		}
	}
	return nil
}

// share is a shard's share of a batch.
type share struct {
	*writer
	batch   *state.Batch
	shard   int
	secret  state.Secret
	updates []*state.EntityUpdate

	// By range: whether the share moves it, where the shard is as far as is known, and whether the store went back in time there.
	moves  []bool
	at     []state.Position
	behind []bool

	steps    int
	refused  map[Key]bool
	refusal  string
	cut      int
	greatest int
	err      error
}

// begin finds the ranges that the share moves, and reports whether there are any.
func (s *share) begin() bool {
	b := s.batch
	wanted := make([]bool, len(b.Ranges))
	for _, u := range s.updates {
		r := &b.Ranges[u.Range]
		wanted[u.Range] = wanted[u.Range] || r.Changes(s.shard, &r.Progress[s.shard], u)
	}
	s.moves, s.behind, s.at = make([]bool, len(b.Ranges)), make([]bool, len(b.Ranges)), make([]state.Position, len(b.Ranges))
	for i := range b.Ranges {
		if r := &b.Ranges[i]; r.Moves(s.shard) && (wanted[i] || b.EveryShard) {
			s.moves[i], s.at[i] = true, r.Progress[s.shard]
		}
	}
	s.refused = map[Key]bool{}
	return slices.Contains(s.moves, true)
}

// apply takes steps until all is applied.
func (s *share) apply(ctx context.Context) error {
	for {
		next := s.next()
		if len(next.updates) == 0 && !s.batch.EveryShard || !slices.Contains(s.moves, true) {
			return nil
		}
		var made made
		err := s.store.engine.Update(ctx, s.shard, next.keys, func(held [][]byte) []Write {
			made = s.step(&next, held)
			return made.writes
		})
		if err != nil {
			return err
		}
		s.steps++
		s.at = made.at
		for i := range s.moves {
			if made.behind[i] {
				s.moves[i], s.behind[i] = false, true
			}
		}
		s.take(&made)
		if made.err != nil {
			return made.err
		}
		if made.writes != nil && next.slices == state.ShardSlices {
			return nil
		}
	}
}

// take notes what became of the values of a step.
func (s *share) take(m *made) {
	for k, err := range m.refused {
		if len(s.refused) == 0 {
			s.refusal = err.Error()
		}
		s.refused[k] = true
	}
	s.cut += m.cut
	s.greatest = max(s.greatest, m.greatest)
}

// nextStep is what a step applies: the updates of the slices below a number that are not applied yet, and the keys that it needs.
type nextStep struct {
	slices  int
	updates []*state.EntityUpdate
	keys    []Key // the record's first
	index   map[Key]int
}

// next plans a step. Slices can be ahead only at one offset, so while they are at another one than the batch leads to, a step
// applies all.
func (s *share) next() nextStep {
	n := nextStep{slices: state.ShardSlices, keys: []Key{{Shard: s.shard}}, index: map[Key]int{}}
	var of [state.ShardSlices]int // mutations
	all, splits := 0, s.store.options.Mutations > 0
	for i, moves := range s.moves {
		splits = splits && (!moves || s.at[i].Slices == 0 || s.at[i].Ahead == s.batch.Ranges[i].To)
	}
	var left []*state.EntityUpdate
	for _, u := range s.updates {
		if s.changes(s.at, u) {
			left = append(left, u)
			of[state.SliceOf(u.Hash)] += u.To - u.From
			all += u.To - u.From
		}
	}
	if splits && all > s.store.options.Mutations {
		n.slices = firstSlices(of, s.store.options.Mutations)
	}
	for _, u := range left {
		if state.SliceOf(u.Hash) >= n.slices {
			continue
		}
		n.updates = append(n.updates, u)
		for i := u.From; i < u.To; i++ {
			k := Key{s.shard, s.batch.Mutations[i].Series.Group, string(u.Entity)}
			if _, known := n.index[k]; !known {
				n.index[k] = len(n.keys)
				n.keys = append(n.keys, k)
			}
		}
	}
	return n
}

// firstSlices returns how many slices have about as many mutations as a step may apply, but at least one that has any.
func firstSlices(of [state.ShardSlices]int, most int) int {
	sum := 0
	for slice, n := range of {
		if sum > 0 && sum+n > most {
			return slice
		}
		sum += n
	}
	return state.ShardSlices
}

// changes reports whether an update is still to be applied.
func (s *share) changes(at []state.Position, u *state.EntityUpdate) bool {
	return s.moves[u.Range] && s.batch.Ranges[u.Range].Changes(s.shard, &at[u.Range], u)
}

// made is what a step has decided.
type made struct {
	at       []state.Position
	behind   []bool
	writes   []Write // nil if positions were found that the step was not planned for
	refused  map[Key]error
	cut      int
	greatest int
	err      error
}

// step decides on the writes of a step, given the record and the values that it needs.
func (s *share) step(n *nextStep, held [][]byte) (m made) {
	m = made{at: slices.Clone(s.at), behind: make([]bool, len(s.at)), refused: map[Key]error{}}
	fields, err := parseFields(held[0])
	if err != nil {
		m.err = err
		return m
	}
	if of := fields[secretField]; of != "" && of != s.secret.Text() {
		m.err = errSecret
		return m
	}
	unexpected := false
	for i := range s.at {
		if !s.moves[i] {
			continue
		}
		r := &s.batch.Ranges[i]
		at, err := state.ParsePosition(fields[progress.PositionField(r.Partition)])
		switch {
		case err != nil || !at.Exists() || at != s.at[i] && !at.Continues(s.at[i], r.Epoch):
			m.behind[i] = true
		case at != s.at[i]:
			m.at[i], unexpected = at, true
		}
	}
	if unexpected || slices.Contains(m.behind, true) {
		return m // planned again
	}
	values := map[int]*value{}
	for _, u := range n.updates {
		for i := u.From; i < u.To; i++ {
			mutation := &s.batch.Mutations[i]
			k := Key{s.shard, mutation.Series.Group, string(u.Entity)}
			at := n.index[k]
			v := values[at]
			if v == nil {
				v = s.store.openValue(k, held[at])
				values[at] = v
			}
			v.add(mutation)
		}
	}
	isGarbage := s.garbage.in(s.shard, fields, s.store.options.Now())
	for at, k := range n.keys {
		if v := values[at]; v != nil {
			s.grow(&m, k, v, isGarbage)
		}
	}
	for i := range m.at {
		if s.moves[i] {
			r := &s.batch.Ranges[i]
			m.at[i] = moved(m.at[i], r, n.slices)
			fields[progress.PositionField(r.Partition)] = m.at[i].String()
		}
	}
	pass(fields, state.Believed(s.batch.Now, time.UnixMilli(s.store.engine.Clock(s.shard))), s.store.engine.Clock(s.shard))
	m.writes = append(m.writes, Write{Key: n.keys[0], Bytes: appendFields(nil, fields)})
	return m
}

// moved returns a position after a step that has applied the slices below a number.
func moved(at state.Position, r *state.PartitionRange, slices int) state.Position {
	if r.To <= at.Offset {
		return at
	}
	at.Epoch = max(at.Epoch, r.Epoch)
	if slices < state.ShardSlices {
		return at.WithAhead(r.To, max(slices, at.Slices)) // an interrupted batch may have got further than this step, to the same end
	}
	return at.To(r.To)
}

// grow adds the mutations of an entity to its value, unless somebody else has written that.
func (s *share) grow(m *made, k Key, v *value, isGarbage func(tag uint32) bool) {
	if v.err != nil {
		m.refused[k] = v.err
		return
	}
	clock := s.store.engine.Clock(s.shard)
	latest := state.Believed(math.MaxInt64, time.UnixMilli(clock))
	bytes, cut, err := v.grown(s.groups.of(k.Group), s.secret, isGarbage, min(s.batch.Now-s.batch.Spare, clock), latest, s.store)
	if err != nil {
		m.refused[k] = err
	}
	if cut {
		m.cut++
	}
	m.greatest = max(m.greatest, len(v.held)+len(v.sections))
	m.writes = append(m.writes, Write{Key: k, Bytes: bytes, Keep: time.Duration(v.lifetime) * time.Millisecond})
}

// pass notes in a record the greatest timestamp of a record of a topic, and how far it is behind the clock; both in ms.
func pass(fields map[string]string, timestamp, clock int64) {
	known := func(field string, none int64) int64 {
		if n, err := strconv.ParseInt(fields[field], 10, 64); err == nil {
			return n
		}
		return none
	}
	if timestamp > known(progress.NewestField, 0) {
		fields[progress.NewestField] = strconv.FormatInt(timestamp, 10)
		fields[progress.LagField] = strconv.FormatInt(min(max(0, clock-timestamp), known(progress.LagField, math.MaxInt64)), 10)
	}
}
