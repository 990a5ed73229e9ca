package redisstore

import (
	"bytes"
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"

	"github.com/weir-stream/weir/state"
)

// shardUpdates collects the updates of a shard for its next calls.
type shardUpdates struct {
	combiner
	at     []state.Position    // by range, where the next call starts
	last   []int64             // by range, the offset that what is collected reaches
	before *state.EntityUpdate // the last one collected
	full   bool                // this pipeline must not have further calls of the shard
}

// begin removes everything, and takes the positions of the batch.
func (s *shardUpdates) begin(b *state.Batch, shard int) {
	s.reset()
	s.at, s.last, s.before, s.full = s.at[:0], s.last[:0], nil, false
	for i := range b.Ranges {
		at := state.NoPosition // if it is behind, its progress may be for another number of shards
		if r := &b.Ranges[i]; !r.Behind {
			at = r.Progress[shard]
		}
		s.at, s.last = append(s.at, at), append(s.last, at.Offset)
	}
}

// enough reports whether what is collected must be applied before anything else of the shard.
func (s *shardUpdates) enough() bool {
	return s.fillsCall() && (s.tooMany() || s.slicesAhead())
}

// slicesAhead reports whether a range has slices ahead in the shard: a batch was applied in part. Until the others have
// come as far, calls are made in the order of offsets: a position can have no slices ahead at two offsets.
func (s *shardUpdates) slicesAhead() bool {
	return slices.ContainsFunc(s.at, func(at state.Position) bool { return at.Slices > 0 })
}

// combiner collects mutations of one shard by state key, and combines equal ones: a counter is written once, however
// many events count. It refers to the texts of the batch, which must not change until reset.
type combiner struct {
	limit     int // of the mutations of a call, see CallMutations
	keys      []stateKey
	mutations []combined
	bytes     int        // of the mutations' values
	hot       bool       // some key has enough mutations for a call of its own
	keyIndex  hashIndex  // of keys
	index     hashIndex  // of mutations that others may be combined with
	sorted    []stateKey // by slice
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

// combined is a mutation of a state key. It may represent several of the batch.
type combined struct {
	state.Mutation
	child  []byte // the entity's text if it is a child of the key's entity, else nil
	key    int32  // index in keys
	next   int32
	packed bool
}

func (c *combiner) reset() {
	c.keys, c.mutations, c.bytes, c.hot = c.keys[:0], c.mutations[:0], 0, false
	c.keyIndex.reset()
	c.index.reset()
}

// fillsCall reports whether there is enough for a call.
func (c *combiner) fillsCall() bool { return len(c.mutations) >= c.limit || c.bytes >= callBytes }

// tooMany reports whether no more should be applied together: some key fills a call, or slices soon would.
func (c *combiner) tooMany() bool {
	const most = state.ShardSlices / 2 // full calls
	return c.hot || len(c.mutations) >= most*c.limit || c.bytes >= most*callBytes
}

// inCalls divides the keys among calls by their slices. A call exceeds the limits only if a single slice does.
func (c *combiner) inCalls() []callKeys {
	c.calls = c.calls[:0]
	if !c.fillsCall() {
		return append(c.calls, callKeys{c.keys, state.ShardSlices})
	}
	c.sort()
	first, count, size := 0, 0, 0 // of the call
	for i := 0; i < len(c.sorted); {
		next, more, moreBytes := c.slice(i)
		if count > 0 && (count+more > c.limit || size+moreBytes > callBytes) {
			c.calls = append(c.calls, callKeys{c.sorted[first:i], int(c.sorted[i].slice)})
			first, count, size = i, 0, 0
		}
		i, count, size = next, count+more, size+moreBytes
	}
	return append(c.calls, callKeys{c.sorted[first:], state.ShardSlices})
}

// slice returns where the keys of the next slice begin in sorted, and the mutations and bytes of the one that begins at
// an index.
func (c *combiner) slice(i int) (next, count, size int) {
	for next = i; next < len(c.sorted) && c.sorted[next].slice == c.sorted[i].slice; next++ {
		count, size = count+int(c.sorted[next].count), size+int(c.sorted[next].bytes)
	}
	return next, count, size
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
func (c *combiner) add(u *state.EntityUpdate, mutations []state.Mutation) {
	var key int32
	var child []byte
	group := ""
	hash := uint64(0) // of the key and the child
	for i := range mutations {
		m := &mutations[i]
		if s := m.Series; i == 0 || s.Group != group { // nearly all series of an entity have one group
			group = s.Group
			if s.Parent == "" {
				key, child = c.key(u.Entity, u.Hash, group, s.GroupKeep), nil
				hash = c.keys[key].hash
			} else {
				parent, _ := state.SplitParent(u.Entity)
				key, child = c.key(parent, u.Hash, s.Parent, s.ParentKeep), u.Entity
				hash = c.keys[key].hash ^ maphash.Bytes(childSeed, child)
			}
		}
		if !m.Series.Measure.Combines() {
			c.append(key, m, child)
		} else if h := mix(hash^m.CombineHash(), m.Series.ID); !c.combine(h, key, m, child) {
			c.index.add(h, len(c.mutations))
			c.append(key, m, child)
		}
	}
}

// combine combines a mutation with one of the key's, if one can express both.
func (c *combiner) combine(hash uint64, key int32, m *state.Mutation, child []byte) bool {
	for i := range c.index.find(hash) {
		held := &c.mutations[i]
		if held.key == key && held.Series == m.Series && bytes.Equal(held.child, child) && held.Combine(m) {
			return true
		}
	}
	return false
}

// append appends a mutation to those of its key.
func (c *combiner) append(key int32, m *state.Mutation, child []byte) {
	c.mutations = append(c.mutations, combined{Mutation: *m, child: child, key: key, next: -1})
	size := len(m.Member) + len(m.Key)
	c.bytes += size
	k := &c.keys[key]
	k.bytes += int32(size)
	k.count++
	c.hot = c.hot || int(k.count) >= c.limit || k.bytes >= callBytes
	added := int32(len(c.mutations) - 1)
	if k.first < 0 {
		k.first = added
	} else {
		c.mutations[k.last].next = added
	}
	k.last = added
}

// key finds or makes the state key of an entity in a group.
func (c *combiner) key(entity []byte, hash uint64, group string, keep int64) int32 {
	slice := uint8(state.SliceOf(hash))
	hash = mix(hash, group)
	for i := range c.keyIndex.find(hash) {
		if k := &c.keys[i]; k.hash == hash && k.group == group && bytes.Equal(k.entity, entity) {
			return int32(i)
		}
	}
	c.keyIndex.add(hash, len(c.keys))
	c.keys = append(c.keys, stateKey{hash: hash, group: group, entity: entity, slice: slice, keep: keep, first: -1})
	return int32(len(c.keys) - 1)
}

var childSeed = maphash.MakeSeed() // of the hashes of children

// mix adds a short text to a hash.
func mix(hash uint64, text string) uint64 {
	for i := range len(text) {
		hash = bits.RotateLeft64(hash, 8) ^ uint64(text[i])*0x9e3779b97f4a7c15
	}
	return hash
}

// hashIndex finds the indices of things by their hash, by open addressing. Its memory is reused.
type hashIndex struct {
	slots []hashSlot // a power of two
	used  int
}

type hashSlot struct {
	hash  uint32
	index int32 // +1; 0 for an empty slot
}

// leastSlots is the least number of slots.
const leastSlots = 64

// reset removes everything. It keeps as many slots as were needed recently.
func (x *hashIndex) reset() {
	if x.used == 0 {
		return
	}
	clear(x.slots)
	if x.used < len(x.slots)/8 && len(x.slots) > leastSlots {
		x.slots = x.slots[:len(x.slots)/2]
	}
	x.used = 0
}

// find returns the indices that may be of things with a hash: others may have the same 32 bits of it.
func (x *hashIndex) find(hash uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		if len(x.slots) == 0 {
			return
		}
		short, mask := uint32(hash>>32), len(x.slots)-1
		for i := int(short) & mask; x.slots[i].index != 0; i = (i + 1) & mask {
			if x.slots[i].hash == short && !yield(int(x.slots[i].index)-1) {
				return
			}
		}
	}
}

// add adds an index.
func (x *hashIndex) add(hash uint64, index int) {
	if len(x.slots) < 2*(x.used+1) {
		slots := x.slots
		x.slots = make([]hashSlot, max(leastSlots, 2*len(slots)))
		for _, s := range slots {
			if s.index != 0 {
				x.put(s)
			}
		}
	}
	x.put(hashSlot{uint32(hash >> 32), int32(index + 1)})
	x.used++
}

func (x *hashIndex) put(s hashSlot) {
	mask := len(x.slots) - 1
	i := int(s.hash) & mask
	for x.slots[i].index != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = s
}
