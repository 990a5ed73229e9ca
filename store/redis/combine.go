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
	ahead  bool                // a range has slices ahead in the shard
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
	s.lookAhead()
}

// enough reports whether what is collected must be applied before anything else of the shard.
func (s *shardUpdates) enough() bool { return s.fillsCall() && (s.tooMany() || s.ahead) }

// lookAhead notes whether a range has slices ahead in the shard: a batch was applied in part. Until the others have
// come as far, calls are made in the order of offsets: a position can have no slices ahead at two offsets.
func (s *shardUpdates) lookAhead() {
	s.ahead = slices.ContainsFunc(s.at, func(at state.Position) bool { return at.Slices > 0 })
}

// combiner collects mutations of one shard by state key, entity and series, and combines those that one can represent: a
// counter is written once, however many events count. It refers to the texts of the batch, which must not change until
// reset.
type combiner struct {
	limit    int // of the mutations of a call, see CallMutations
	keys     []stateKey
	entities []keyEntity
	sections []seriesSection
	further  []furtherMutations
	more     []combined // the further mutations
	count    int        // of all mutations
	bytes    int        // of their values
	hot      bool       // some key has enough mutations for a call of its own
	byText   hashIndex  // of entities
	byMember hashIndex  // of further mutations that others may be combined with, see furtherMutations.indexed
	sorted   []stateKey // by slice
	calls    []callKeys
}

// stateKey is one Redis key with what changes in it.
type stateKey struct {
	keep  int64 // how long after a record its state may be asked for, in ms; 0 forever
	first int32 // of its entities in a linked list: index in entities. It is the one after which the key is named
	last  int32
	count int32 // of its mutations
	bytes int32 // of their values
	slice uint8 // of the entity
}

// keyEntity is an entity whose state a key holds: the one after which it is named, or a child of that.
type keyEntity struct {
	hash  uint64
	group string
	text  []byte
	key   int32 // index in keys
	next  int32 // in the linked list of the key; -1 for none
	first int32 // its first section in a linked list: index in sections, -1 for none
	last  int32
}

// seriesSection is a series of an entity with its mutations. Most have one, so the first is held here: packing then
// reads the sections of an entity one after another. Each mutation may represent several of the batch.
type seriesSection struct {
	first   state.Mutation
	further int32 // those after the first: index in further, -1 for none
	next    int32
}

// furtherMutations are the mutations of a section after the first.
type furtherMutations struct {
	latest  int64 // the greatest tile, the first mutation's included
	first   int32 // in a linked list: index in more
	last    int32
	indexed int32 // the last one that is in byMember, -1 for none
}

// combined is one of the further mutations of a section.
type combined struct {
	state.Mutation
	section int32 // index in sections
	next    int32
}

func (c *combiner) reset() {
	c.keys, c.entities, c.sections, c.further, c.more = c.keys[:0], c.entities[:0], c.sections[:0], c.further[:0], c.more[:0]
	c.count, c.bytes, c.hot = 0, 0, false
	c.byText.reset()
	c.byMember.reset()
}

// fillsCall reports whether there is enough for a call.
func (c *combiner) fillsCall() bool { return c.count >= c.limit || c.bytes >= maxCallBytes }

// tooMany reports whether no more should be applied together: some key fills a call, or slices soon would.
func (c *combiner) tooMany() bool {
	const most = state.ShardSlices / 2 // full calls
	return c.hot || c.count >= most*c.limit || c.bytes >= most*maxCallBytes
}

// add adds the mutations of an entity.
func (c *combiner) add(u *state.EntityUpdate, mutations []state.Mutation) {
	group, entity, at := "", int32(0), int32(-1)
	count, size := 0, 0 // of what the entity gets
	for i := range mutations {
		m := &mutations[i]
		if s := m.Series; i == 0 || s.Group != group { // nearly all series of an entity have one group
			c.grow(entity, count, size)
			group, at, count, size = s.Group, -1, 0, 0
			if s.Parent == "" {
				entity = c.own(u.Entity, u.Hash, group, s.GroupKeep)
			} else {
				entity = c.child(u, s)
			}
		}
		switch at = c.section(entity, m.Series, at); {
		case at < 0:
			at = c.addSection(entity, m)
		case m.Series.Measure.Combines() && c.combine(at, m):
			continue
		default:
			c.append(at, m)
		}
		count, size = count+1, size+m.Size()
	}
	c.grow(entity, count, size)
}

// grow counts mutations, with values of that size, that an entity got.
func (c *combiner) grow(entity int32, count, size int) {
	if count == 0 {
		return
	}
	c.count, c.bytes = c.count+count, c.bytes+size
	k := &c.keys[c.entities[entity].key]
	k.count, k.bytes = k.count+int32(count), k.bytes+int32(size)
	c.hot = c.hot || int(k.count) >= c.limit || k.bytes >= maxCallBytes
}

// own finds or makes the entity after which a key is named, with its key.
func (c *combiner) own(text []byte, hash uint64, group string, keep int64) int32 {
	slice := uint8(state.SliceOf(hash))
	hash = mix(hash, group)
	if i := c.entity(hash, group, text); i >= 0 {
		return i
	}
	key := int32(len(c.keys))
	added := c.addEntity(keyEntity{hash: hash, group: group, text: text, key: key})
	c.keys = append(state.WithRoom(c.keys), stateKey{slice: slice, keep: keep, first: added, last: added})
	return added
}

// child finds or makes an entity that is a child, in its parent's key.
func (c *combiner) child(u *state.EntityUpdate, s *state.Series) int32 {
	hash := mix(u.Hash^maphash.Bytes(childSeed, u.Entity), s.Group)
	if i := c.entity(hash, s.Group, u.Entity); i >= 0 {
		return i
	}
	parent, _ := state.SplitParent(u.Entity)
	key := c.entities[c.own(parent, u.Hash, s.Parent, s.ParentKeep)].key
	added := c.addEntity(keyEntity{hash: hash, group: s.Group, text: u.Entity, key: key})
	k := &c.keys[key]
	c.entities[k.last].next, k.last = added, added
	return added
}

// entity finds an entity; -1 if it is not there.
func (c *combiner) entity(hash uint64, group string, text []byte) int32 {
	for i := range c.byText.find(hash) {
		if e := &c.entities[i]; e.hash == hash && e.group == group && bytes.Equal(e.text, text) {
			return int32(i)
		}
	}
	return -1
}

func (c *combiner) addEntity(e keyEntity) int32 {
	e.first, e.last, e.next = -1, -1, -1
	c.byText.add(e.hash, len(c.entities))
	c.entities = append(state.WithRoom(c.entities), e)
	return int32(len(c.entities) - 1)
}

// section finds the section of a series of an entity; -1 if it is not there. Events change series in the same order, so
// it is mostly the one after that of the event's mutation before, or there is none after that.
func (c *combiner) section(entity int32, s *state.Series, before int32) int32 {
	first, next := c.entities[entity].first, int32(-1)
	if before >= 0 {
		next = c.sections[before].next
	}
	for i := next; i >= 0; i = c.sections[i].next {
		if c.sections[i].first.Series == s {
			return i
		}
	}
	for i := first; i != next; i = c.sections[i].next {
		if c.sections[i].first.Series == s {
			return i
		}
	}
	return -1
}

// addSection adds a section with its first mutation.
func (c *combiner) addSection(entity int32, m *state.Mutation) int32 {
	added := int32(len(c.sections))
	c.sections = append(state.WithRoom(c.sections), seriesSection{first: *m, further: -1, next: -1})
	e := &c.entities[entity]
	if e.first < 0 {
		e.first = added
	} else {
		c.sections[e.last].next = added
	}
	e.last = added
	return added
}

// combine combines a mutation with one of its section, if one can express both. Events mostly come in the order of time,
// so that is the last one, or there is none of the tile.
func (c *combiner) combine(in int32, m *state.Mutation) bool {
	s := &c.sections[in]
	if s.further < 0 {
		return s.first.Combine(m)
	}
	f := &c.further[s.further]
	switch {
	case c.more[f.last].Combine(m):
		return true
	case m.Tile > f.latest && m.Series.Measure.ByTile():
		return false
	case s.first.Combine(m):
		return true
	case f.first == f.last:
		return false
	}
	c.index(f)
	for i := range c.byMember.find(memberHash(in, m)) {
		if held := &c.more[i]; held.section == in && held.Combine(m) {
			return true
		}
	}
	return false
}

// index adds the further mutations of a section to byMember that are not yet there.
func (c *combiner) index(f *furtherMutations) {
	i := f.first
	if f.indexed >= 0 {
		i = c.more[f.indexed].next
	}
	for ; i >= 0; i = c.more[i].next {
		c.byMember.add(memberHash(c.more[i].section, &c.more[i].Mutation), int(i))
	}
	f.indexed = f.last
}

// append appends a mutation to those of its section.
func (c *combiner) append(in int32, m *state.Mutation) {
	added := int32(len(c.more))
	c.more = append(state.WithRoom(c.more), combined{Mutation: *m, section: in, next: -1})
	s := &c.sections[in]
	if s.further < 0 {
		s.further = int32(len(c.further))
		c.further = append(state.WithRoom(c.further), furtherMutations{latest: max(s.first.Tile, m.Tile), first: added, last: added, indexed: -1})
		return
	}
	f := &c.further[s.further]
	c.more[f.last].next = added
	f.last, f.latest = added, max(f.latest, m.Tile)
}

// memberHash returns a hash that is the same for all mutations of a section that can be combined.
func memberHash(section int32, m *state.Mutation) uint64 {
	return bits.RotateLeft64(m.CombineHash(), 17) ^ uint64(section+1)*0x9e3779b97f4a7c15
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

// minSlots is the least number of slots.
const minSlots = 64

// reset removes everything. It keeps as many slots as were needed recently.
func (x *hashIndex) reset() {
	if x.used == 0 {
		return
	}
	clear(x.slots)
	if x.used < len(x.slots)/8 && len(x.slots) > minSlots {
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
		x.slots = make([]hashSlot, max(minSlots, 2*len(slots)))
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
