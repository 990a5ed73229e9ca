package values

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// open returns what a value holds of an entity: how long it is kept after a write, in ms, or 0 forever, and its packed state.
func open(held []byte) (lifetime int64, sections []byte, err error) {
	if len(held) == 0 || held[0] != stateMark {
		return 0, nil, errForeign
	}
	keep, n := binary.Uvarint(held[1:])
	if n <= 0 || int64(keep) < 0 {
		return 0, nil, errForeign
	}
	return int64(keep), held[1+n:], nil
}

// value is the value of an entity, with the mutations that it gets.
type value struct {
	lifetime int64 // in ms, 0 for forever
	held     []byte
	fresh    bool // there was none
	err      error

	series    []*state.Series
	mutations [][]state.Mutation // by series
	sections  []byte             // these, packed
}

func openValue(held []byte) *value {
	v := &value{fresh: held == nil}
	if held != nil {
		v.lifetime, v.held, v.err = open(held)
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

// grown returns the value with its mutations, and whether a bound has cut it. now is the moment by which state is pruned, and no
// record that was applied has a timestamp after latest, both in ms. An error says what of it is damaged: the rest is returned.
func (v *value) grown(g *group, secret state.Secret, now, latest int64, s *Store) (bytes []byte, cut bool, err error) {
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
	bytes = binary.AppendUvarint([]byte{stateMark}, uint64(v.lifetime))
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
	bytes, err = c.Compact(bytes, whole, g.known, func(uint32) bool { return false }, now, nonce)
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
