package redisstore

import (
	"bytes"
	"math/bits"

	"github.com/weir-stream/weir/state"
)

// combiner collects the mutations of one script call by state key, and combines equal ones: a hot
// counter is written once for each batch.
type combiner struct {
	keys      []stateKey
	mutations []combined
	bytes     int     // of the mutations' values
	table     []int32 // open addressing over keys: index + 1, 0 for empty
}

// stateKey is one Redis key with its mutations, including those of children of its entity.
type stateKey struct {
	hash   uint64
	group  string
	entity []byte
	keep   int64 // how long after a record its state may be asked for, in ms; 0 forever
	first  int32 // its first mutation in a linked list: index in mutations, -1 for none
	last   int32
}

type combined struct {
	state.Mutation
	child  []byte // the entity's text if it is a child of the key's entity, else nil
	next   int32
	packed bool
}

func (c *combiner) reset() {
	c.keys, c.mutations, c.bytes = c.keys[:0], c.mutations[:0], 0
	clear(c.table)
}

// full says whether there is enough for a call.
func (c *combiner) full() bool { return len(c.mutations) >= callOps || c.bytes >= callBytes }

// add adds a mutation of an entity whose hash is known.
func (c *combiner) add(entity []byte, hash uint64, op *state.Mutation) {
	group, keep, child := op.Series.Group, op.Series.GroupKeep, []byte(nil)
	if op.Series.Parent != "" {
		group, keep, child = op.Series.Parent, op.Series.ParentKeep, entity
		entity, _ = state.SplitParent(entity)
	}
	key := c.key(entity, hash, group)
	key.keep = keep
	if op.Series.Measure.Combines() {
		for i := key.first; i >= 0; i = c.mutations[i].next {
			if bytes.Equal(c.mutations[i].child, child) && c.mutations[i].Combine(op) {
				return
			}
		}
	}
	c.append(key, op, child)
}

// append appends a mutation to those of its key.
func (c *combiner) append(key *stateKey, op *state.Mutation, child []byte) {
	c.mutations = append(c.mutations, combined{Mutation: *op, child: child, next: -1})
	c.bytes += len(op.Member) + len(op.Key)
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
	c.keys = append(c.keys, stateKey{hash: hash, group: group, entity: entity, first: -1})
	c.table[i] = int32(len(c.keys))
	return &c.keys[len(c.keys)-1]
}

func (c *combiner) grow() {
	c.table = make([]int32, max(64, 2*len(c.table)))
	mask := uint64(len(c.table) - 1)
	for n := range c.keys {
		i := c.keys[n].hash & mask
		for c.table[i] != 0 {
			i = (i + 1) & mask
		}
		c.table[i] = int32(n + 1)
	}
}
