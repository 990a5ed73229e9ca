package values

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// header is what stands before the packed state in the value of an entity, after a mark: how long the value is kept, and whose it is.
type header struct {
	lifetime int64 // in ms after a write, 0 for forever
	group    string
	entity   string // "" if entities are hashed
}

func (h *header) append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, stateMark), uint64(h.lifetime))
	for _, name := range [...]string{h.group, h.entity} {
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
	}
	return dst
}

// open returns the header of a value, and its packed state.
func open(held []byte) (h header, sections []byte, err error) {
	if len(held) == 0 || held[0] != stateMark {
		return h, nil, errForeign
	}
	lifetime, n := binary.Uvarint(held[1:])
	if n <= 0 || int64(lifetime) < 0 {
		return h, nil, errForeign
	}
	h.lifetime, held = int64(lifetime), held[1+n:]
	for _, name := range [...]*string{&h.group, &h.entity} {
		length, n := binary.Uvarint(held)
		if n <= 0 || length > uint64(len(held)-n) {
			return h, nil, errForeign
		}
		*name, held = string(held[n:n+int(length)]), held[n+int(length):]
	}
	return h, held, nil
}

// openOf opens the value of an entity.
func (s *Store) openOf(k Key, held []byte) (h header, sections []byte, err error) {
	if h, sections, err = open(held); err == nil && (h.group != k.Group || !s.options.Hashed && h.entity != k.Entity) {
		err = errOther
	}
	return h, sections, err
}

// value is the value of an entity, with the mutations that it gets.
type value struct {
	header
	held  []byte // packed
	fresh bool   // there was none
	err   error

	series    []*state.Series
	mutations [][]state.Mutation // by series
	sections  []byte             // these, packed
}

func (s *Store) openValue(k Key, held []byte) *value {
	v := &value{fresh: held == nil}
	if held != nil {
		v.header, v.held, v.err = s.openOf(k, held)
		return v
	}
	if v.group = k.Group; !s.options.Hashed {
		v.entity = k.Entity
	}
	return v
}

// add adds a mutation. Those that one can express are combined.
func (v *value) add(m *state.Mutation) {
	i := slices.Index(v.series, m.Series)
	if i < 0 {
		i = len(v.series)
		v.series, v.mutations = append(v.series, m.Series), append(v.mutations, nil)
	}
	of := v.mutations[i]
	if last := len(of) - 1; last >= 0 && m.Series.Measure.Combines() && of[last].Combine(m) {
		return
	}
	v.mutations[i] = append(of, *m)
}

// A value is compacted once what was appended since the last time is longer than what that left, and than leastGrowth bytes.
const leastGrowth = 512

// compactors are those that no goroutine uses.
var compactors = sync.Pool{New: func() any { return new(packed.Compactor) }}

// grown returns the value with its mutations, and whether a bound has cut it. Of unknown series what isGarbage is
// dropped. now is the moment by which state is pruned, and no record that was applied has a timestamp after latest,
// both in ms. An error says what of it is damaged: the rest is returned.
func (v *value) grown(g *group, secret state.Secret, isGarbage func(tag uint32) bool, now, latest int64, s *Store) (bytes []byte, cut bool, err error) {
	packer := packed.Packer{Secret: secret}
	for i, series := range v.series {
		packer.Begin(series)
		for j := range v.mutations[i] {
			packer.Add(&v.mutations[i][j])
		}
		v.sections = packer.End(v.sections)
		switch lifetime := s.lifetime(series.GroupKeep); {
		case v.fresh:
			v.lifetime, v.fresh = lifetime, false
		case lifetime == 0 || v.lifetime == 0:
			v.lifetime = 0
		default:
			v.lifetime = max(v.lifetime, lifetime)
		}
	}
	bytes = v.header.append(nil)
	before := packed.Identified(v.held)
	whole := append(slices.Clip(v.held), v.sections...)
	if len(whole)-before <= max(before, leastGrowth) {
		return append(bytes, whole...), false, nil
	}
	c := compactors.Get().(*packed.Compactor)
	defer compactors.Put(c)
	c.Secret, c.Most, c.Latest = secret, g.most, latest
	var nonce packed.Nonce
	_, _ = rand.Read(nonce[:]) // it never fails
	bytes, err = c.Compact(bytes, whole, g.known, isGarbage, now, nonce)
	return bytes, c.Cut, err
}

// group has what the values of a group need.
type group struct {
	series map[uint32]*state.Series // by tag
	most   int                      // bytes that a value may take
}

func (g *group) known(tag uint32) *state.Series { return g.series[tag] }

// groups are the groups of the series of the batches.
type groups struct {
	learned []*state.Series
	named   map[string]*group
}

// learn takes the series of a batch. A batch without records has none.
func (g *groups) learn(series []*state.Series) {
	if len(series) == 0 || slices.Equal(series, g.learned) {
		return
	}
	g.learned, g.named = series, map[string]*group{}
	for _, s := range series {
		of := g.named[s.Group]
		if of == nil {
			of = &group{series: map[uint32]*state.Series{}}
			g.named[s.Group] = of
		}
		of.series[s.Tag()], of.most = s, max(of.most, s.KeyBytes)
	}
}

// of returns a group, one without series if it is unknown.
func (g *groups) of(name string) *group {
	if of := g.named[name]; of != nil {
		return of
	}
	return &group{}
}

// Owner returns the group and the entity of which a value is, "" if entities are hashed. It fails if the value is none of Weir's.
func Owner(held []byte) (group, entity string, err error) {
	h, _, err := open(held)
	return h.group, h.entity, err
}
