package redisstore

import (
	"bytes"
	"math/bits"

	"github.com/weir-stream/weir/state"
)

// combiner gathers the operations of one script call by state key, and makes
// one of those that do the same: a hot counter is written once a batch.
type combiner struct {
	keys  []stateKey
	ops   []combined
	bytes int     // of the operations' values
	table []int32 // open addressing over keys: index + 1, 0 for empty
}

// stateKey is one key of Redis with the operations on it, those on children of its
// entity included.
type stateKey struct {
	hash   uint64
	group  string
	entity []byte
	keep   int64 // for how long after a record was written it may be asked for, in ms; 0 for ever
	first  int32 // its operations, linked: index in ops, -1 for none
	last   int32
}

type combined struct {
	state.Mutation
	child  []byte // the entity's text where that is a child of the key's, nil otherwise
	next   int32
	packed bool
}

func (c *combiner) reset() {
	c.keys, c.ops, c.bytes = c.keys[:0], c.ops[:0], 0
	clear(c.table)
}

// full says whether what it holds is enough for a call.
func (c *combiner) full() bool { return len(c.ops) >= callOps || c.bytes >= callBytes }

// add takes an operation on an entity whose hash is known.
func (c *combiner) add(entity []byte, hash uint64, op *state.Mutation) {
	group, keep, child := op.Series.Group, op.Series.GroupKeep, []byte(nil)
	if op.Series.Parent != "" {
		group, keep, child = op.Series.Parent, op.Series.ParentKeep, entity
		entity, _ = state.SplitParent(entity)
	}
	key := c.key(entity, hash, group)
	key.keep = keep
	if op.Series.Measure.Combines() {
		for i := key.first; i >= 0; i = c.ops[i].next {
			if bytes.Equal(c.ops[i].child, child) && c.ops[i].Combine(op) {
				return
			}
		}
	}
	c.append(key, op, child)
}

// append adds an operation behind the others of its key.
func (c *combiner) append(key *stateKey, op *state.Mutation, child []byte) {
	c.ops = append(c.ops, combined{Mutation: *op, child: child, next: -1})
	c.bytes += len(op.Member) + len(op.Key)
	added := int32(len(c.ops) - 1)
	if key.first < 0 {
		key.first = added
	} else {
		c.ops[key.last].next = added
	}
	key.last = added
}

// key finds or makes the state key of a group's entity.
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
