package redisstore

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/weir-stream/weir/state"
)

// combiner collects mutations of one shard by state key, and combines equal ones: a counter is written once, however
// many events count. It refers to the mutations of the batch, which must not change until reset.
type combiner struct {
	limit     int // of the mutations of a call, see CallMutations
	keys      []stateKey
	mutations []combined
	sums      []state.Mutation // those that represent several of the batch
	bytes     int              // of the mutations' values
	hot       bool             // some key has enough mutations for a call of its own
	table     []int32          // open addressing over keys: index + 1, 0 for empty
	sorted    []stateKey       // by slice
	calls     []callKeys
}

// callKeys are the keys that one call applies: those of some slices.
type callKeys struct {
	keys   []stateKey
	slices int // after the call, the slices below this one are complete
}

// stateKey is one Redis key with its mutations, including those of its entity's children.
type stateKey struct {
	hash   uint64
	group  string
	entity []byte
	keep   int64 // how long after a record its state may be asked for, in ms; 0 forever
	first  int32 // its first mutation in a linked list: index in mutations, -1 for none
	last   int32
	count  int32 // of its mutations
	bytes  int32 // of their values
	slice  uint8 // of the entity
}

type combined struct {
	*state.Mutation        // of the batch, or in sums
	child           []byte // the entity's text if it is a child of the key's entity, else nil
	next            int32
	summed          bool // it is in sums
	packed          bool
}

func (c *combiner) reset() {
	c.keys, c.mutations, c.sums, c.bytes, c.hot = c.keys[:0], c.mutations[:0], c.sums[:0], 0, false
	clear(c.table)
	c.table = c.table[:min(len(c.table), smallTable)] // small batches may follow
}

// fillsCall reports whether there is enough for a call.
func (c *combiner) fillsCall() bool { return len(c.mutations) >= c.limit || c.bytes >= callBytes }

// full reports whether no more should be applied together: some key would make its call too long, or slices would.
func (c *combiner) full() bool {
	const most = state.ShardSlices / 4 // calls, so that one slice more does not make a call much longer
	return c.hot || len(c.mutations) >= most*c.limit || c.bytes >= most*callBytes
}

// inCalls divides the keys among calls by their slices.
func (c *combiner) inCalls() []callKeys {
	c.calls = c.calls[:0]
	if !c.fillsCall() {
		return append(c.calls, callKeys{c.keys, state.ShardSlices})
	}
	c.sort()
	first, count, size := 0, 0, 0 // of the call
	for i := range c.sorted {
		k := &c.sorted[i]
		if (count >= c.limit || size >= callBytes) && k.slice != c.sorted[i-1].slice {
			c.calls = append(c.calls, callKeys{c.sorted[first:i], int(k.slice)})
			first, count, size = i, 0, 0
		}
		count, size = count+int(k.count), size+int(k.bytes)
	}
	return append(c.calls, callKeys{c.sorted[first:], state.ShardSlices})
}

// sort sorts the keys by slice.
func (c *combiner) sort() {
	var next [state.ShardSlices + 1]int // where the next key of each slice goes
	for i := range c.keys {
		next[c.keys[i].slice+1]++
	}
	for slice := 1; slice < len(next); slice++ {
		next[slice] += next[slice-1]
	}
	c.sorted = slices.Grow(c.sorted[:0], len(c.keys))[:len(c.keys)]
	for i := range c.keys {
		n := &next[c.keys[i].slice]
		c.sorted[*n] = c.keys[i]
		*n++
	}
}

// add adds the mutations of an entity.
func (c *combiner) add(t *state.EntityUpdate, mutations []state.Mutation) {
	var key *stateKey
	var child []byte
	var group string
	var from int32 // where to look for a mutation to combine with: events of one kind name their series in one order
	for i := range mutations {
		m := &mutations[i]
		if s := m.Series; key == nil || s.Group != group { // nearly all series of an entity have one group
			group = s.Group
			if s.Parent == "" {
				key, child = c.key(t.Entity, t.Hash, group), nil
				key.keep = s.GroupKeep
			} else {
				parent, _ := state.SplitParent(t.Entity)
				key, child = c.key(parent, t.Hash, s.Parent), t.Entity
				key.keep = s.ParentKeep
			}
			from = key.first
		}
		if m.Series.Measure.Combines() {
			if next, ok := c.combine(key, from, m, child); ok {
				from = next
				continue
			}
		}
		c.append(key, m, child)
	}
}

// combine combines a mutation with one of the key's, if one can express both. It searches from an index on, then before
// it, and returns the index after the match.
func (c *combiner) combine(key *stateKey, from int32, m *state.Mutation, child []byte) (next int32, ok bool) {
	if from < 0 {
		return from, false
	}
	for i, first := from, true; first || i != from; first = false {
		held := &c.mutations[i]
		if i = held.next; i < 0 {
			i = key.first
		}
		if held.Series == m.Series && bytes.Equal(held.child, child) && c.sum(held, m) {
			return i, true
		}
	}
	return from, false
}

// sum adds a mutation to one held, if one can express both. The batch's mutation does not change, because the batch may
// be applied again.
func (c *combiner) sum(held *combined, m *state.Mutation) bool {
	if held.summed {
		return held.Combine(m)
	}
	c.sums = append(c.sums, *held.Mutation) // if append moves them, pointers to the earlier ones stay valid
	if sum := &c.sums[len(c.sums)-1]; sum.Combine(m) {
		held.Mutation, held.summed = sum, true
		return true
	}
	c.sums = c.sums[:len(c.sums)-1]
	return false
}

// append appends a mutation to those of its key.
func (c *combiner) append(key *stateKey, m *state.Mutation, child []byte) {
	c.mutations = append(c.mutations, combined{Mutation: m, child: child, next: -1})
	size := len(m.Member) + len(m.Key)
	c.bytes += size
	key.bytes += int32(size)
	key.count++
	c.hot = c.hot || int(key.count) >= c.limit || key.bytes >= callBytes
	added := int32(len(c.mutations) - 1)
	if key.first < 0 {
		key.first = added
	} else {
		c.mutations[key.last].next = added
	}
	key.last = added
}

// key finds or makes the state key of an entity in a group.
func (c *combiner) key(entity []byte, hash uint64, group string) *stateKey {
	if len(c.table) < 2*(len(c.keys)+1) {
		c.grow()
	}
	slice := uint8(state.SliceOf(hash))
	for i := range len(group) {
		hash = bits.RotateLeft64(hash, 8) ^ uint64(group[i])*0x9e3779b97f4a7c15
	}
	mask := uint64(len(c.table) - 1)
	i := hash & mask
	for ; c.table[i] != 0; i = (i + 1) & mask {
		k := &c.keys[c.table[i]-1]
		if k.hash == hash && k.group == group && bytes.Equal(k.entity, entity) {
			return k
		}
	}
	c.keys = append(c.keys, stateKey{hash: hash, group: group, entity: entity, slice: slice, first: -1})
	c.table[i] = int32(len(c.keys))
	return &c.keys[len(c.keys)-1]
}

// smallTable is the least size of the table.
const smallTable = 64

func (c *combiner) grow() {
	size := max(smallTable, 2*len(c.table))
	if size <= cap(c.table) {
		c.table = c.table[:size]
		clear(c.table)
	} else {
		c.table = make([]int32, size)
	}
	mask := uint64(len(c.table) - 1)
	for n := range c.keys {
		i := c.keys[n].hash & mask
		for c.table[i] != 0 {
			i = (i + 1) & mask
		}
		c.table[i] = int32(n + 1)
	}
}
