package redisstore

import (
	"bytes"
	"math"
	"math/bits"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// combiner gathers the operations of one script call by state key, and makes
// one of those that do the same: a hot counter is written once a batch.
type combiner struct {
	keys  []stateKey
	ops   []combined
	bytes int     // of the operations' values
	table []int32 // open addressing over keys: index + 1, 0 for empty
}

// stateKey is one key of Redis with the operations on it.
type stateKey struct {
	hash   uint64
	series *state.Series // one of those of the key's group
	entity []byte
	first  int32 // its operations, linked: index in ops, -1 for none
	last   int32
}

type combined struct {
	state.Mutation
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
	key := c.key(entity, hash, op)
	if m := op.Series.Measure; m == state.Record || m == state.Spread || m == state.Identify {
		c.appendHash(key, op) // no event stands for another
		return
	}
	for i := key.first; i >= 0; i = c.ops[i].next {
		if merge(&c.ops[i].Mutation, op) {
			return
		}
	}
	c.appendHash(key, op)
}

// appendHash adds an operation behind the others of its key.
func (c *combiner) appendHash(key *stateKey, op *state.Mutation) {
	c.ops = append(c.ops, combined{Mutation: *op, next: -1})
	c.bytes += len(op.Member) + len(op.Key)
	added := int32(len(c.ops) - 1)
	if key.first < 0 {
		key.first = added
	} else {
		c.ops[key.last].next = added
	}
	key.last = added
}

// key finds or makes the state key of an operation.
func (c *combiner) key(entity []byte, hash uint64, op *state.Mutation) *stateKey {
	if len(c.table) < 2*(len(c.keys)+1) {
		c.grow()
	}
	group := op.Series.Group
	for i := range len(group) {
		hash = bits.RotateLeft64(hash, 8) ^ uint64(group[i])*0x9e3779b97f4a7c15
	}
	mask := uint64(len(c.table) - 1)
	i := hash & mask
	for ; c.table[i] != 0; i = (i + 1) & mask {
		k := &c.keys[c.table[i]-1]
		if k.hash == hash && k.series.Group == group && bytes.Equal(k.entity, entity) {
			return k
		}
	}
	c.keys = append(c.keys, stateKey{hash: hash, series: op.Series, entity: entity, first: -1})
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

// merge folds op into into and says whether it could: they must touch the same
// field, and do there what one operation can do.
func merge(into, op *state.Mutation) bool {
	if into.Series != op.Series && into.Series.ID != op.Series.ID {
		return false
	}
	if !bytes.Equal(into.Key, op.Key) {
		return false
	}
	switch measure := into.Series.Measure; measure {
	case state.CountEvents, state.CountValues, state.CountHolds, state.Sum:
		if into.Tile != op.Tile {
			return false
		}
		if into.Series.Type == value.Float && measure == state.Sum {
			into.Num = floatBits(floatOf(into.Num) + floatOf(op.Num))
			return true
		}
		sum := into.Num + op.Num
		if (sum > into.Num) != (op.Num > 0) && op.Num != 0 {
			return false // where it overflows is for the state to say
		}
		into.Num = sum
		return true
	case state.Min, state.Max, state.Earliest, state.Latest:
		if into.Tile != op.Tile {
			return false
		}
		if less := numLess(into.Series.Type, op.Num, into.Num); less == (measure == state.Min || measure == state.Earliest) {
			into.Num = op.Num
		}
		return true
	case state.FirstValue, state.LastValue, state.LeastText, state.GreatestText:
		if into.Tile != op.Tile {
			return false
		}
		if measure.Replaces(op.Num, op.Member, into.Num, into.Member) {
			into.Num, into.Member = op.Num, op.Member
		}
		return true
	case state.Touch:
		if !bytes.Equal(into.Member, op.Member) {
			return false
		}
		into.Num = max(into.Num, op.Num)
		return true
	default: // Distinct, Approx, Seen: once is enough
		return into.Tile == op.Tile && bytes.Equal(into.Member, op.Member)
	}
}

func numLess(t value.Type, a, b int64) bool {
	if t == value.Float {
		return floatOf(a) < floatOf(b)
	}
	return a < b
}

func floatOf(bits int64) float64 { return math.Float64frombits(uint64(bits)) }
func floatBits(f float64) int64  { return int64(math.Float64bits(f)) }
