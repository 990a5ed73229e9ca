package store

import (
	"bytes"
	"math"
	"math/bits"

	"github.com/weir-stream/weir/features/kinds"
)

// combiner gathers the operations of one script call by state key, and makes
// one of those that do the same: a hot counter is written once a batch.
type combiner struct {
	keys  []stateKey
	ops   []combined
	table []int32 // open addressing over keys: index + 1, 0 for empty
}

// stateKey is one key of Redis with the operations on it.
type stateKey struct {
	hash   uint64
	series *kinds.Series // one of those that stand in the key
	entity []byte
	tile   int64 // of the key, for Sketches
	first  int32 // its operations, linked: index in ops, -1 for none
	last   int32
}

type combined struct {
	kinds.Op
	next int32
}

func (c *combiner) reset() {
	c.keys, c.ops = c.keys[:0], c.ops[:0]
	clear(c.table)
}

// add takes an operation on an entity whose hash is known.
func (c *combiner) add(entity []byte, hash uint64, op *kinds.Op) {
	key := c.key(entity, hash, op)
	if op.Series.Measure == kinds.Record {
		c.append(key, op) // no event stands for another
		return
	}
	for i := key.first; i >= 0; i = c.ops[i].next {
		if merge(&c.ops[i].Op, op) {
			return
		}
	}
	c.append(key, op)
}

// append adds an operation behind the others of its key.
func (c *combiner) append(key *stateKey, op *kinds.Op) {
	c.ops = append(c.ops, combined{Op: *op, next: -1})
	added := int32(len(c.ops) - 1)
	if key.first < 0 {
		key.first = added
	} else {
		c.ops[key.last].next = added
	}
	key.last = added
}

// key finds or makes the state key of an operation.
func (c *combiner) key(entity []byte, hash uint64, op *kinds.Op) *stateKey {
	if len(c.table) < 2*(len(c.keys)+1) {
		c.grow()
	}
	tile := int64(0)
	if op.Series.Measure.State() == kinds.Sketches {
		tile = op.Tile
	}
	hash = bits.RotateLeft64(hash^keySalt(op.Series), 29) + uint64(tile)*0x9e3779b97f4a7c15
	mask := uint64(len(c.table) - 1)
	i := hash & mask
	for ; c.table[i] != 0; i = (i + 1) & mask {
		k := &c.keys[c.table[i]-1]
		if k.hash == hash && k.tile == tile && sameKey(k.series, op.Series) && bytes.Equal(k.entity, entity) {
			return k
		}
	}
	c.keys = append(c.keys, stateKey{hash: hash, series: op.Series, entity: entity, tile: tile, first: -1})
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

// keySalt tells the state keys of one entity apart; equal for series that
// share a key.
func keySalt(s *kinds.Series) uint64 {
	id := s.ID
	if s.Measure.State() == kinds.Tiles {
		id = s.Group
	}
	salt := uint64(s.Measure.State())
	for i := range len(id) {
		salt = salt<<8 | uint64(id[i])
	}
	return salt * 0xff51afd7ed558ccd
}

// sameKey says whether two series of an entity stand in one state key.
func sameKey(a, b *kinds.Series) bool {
	if a == b {
		return true
	}
	state := a.Measure.State()
	if state != b.Measure.State() {
		return false
	}
	if state == kinds.Tiles {
		return a.Group == b.Group
	}
	return a.ID == b.ID
}

// merge folds op into into and says whether it could: they must touch the same
// field, and do there what one operation can do.
func merge(into, op *kinds.Op) bool {
	if into.Series != op.Series && into.Series.ID != op.Series.ID {
		return false
	}
	switch into.Series.Measure {
	case kinds.CountEvents, kinds.CountValues, kinds.Sum:
		if into.Tile != op.Tile {
			return false
		}
		if into.Series.Type == kinds.Float && into.Series.Measure == kinds.Sum {
			into.Num = floatBits(floatOf(into.Num) + floatOf(op.Num))
			return true
		}
		sum := into.Num + op.Num
		if (sum > into.Num) != (op.Num > 0) && op.Num != 0 {
			return false // the sum overflows here; Redis refuses it and says so
		}
		into.Num = sum
		return true
	case kinds.Min, kinds.Max:
		if into.Tile != op.Tile {
			return false
		}
		if less := numLess(into.Series.Type, op.Num, into.Num); less == (into.Series.Measure == kinds.Min) {
			into.Num = op.Num
		}
		return true
	case kinds.Touch:
		if !bytes.Equal(into.Member, op.Member) {
			return false
		}
		into.Num = max(into.Num, op.Num)
		return true
	default: // Distinct, Approx: once is enough
		return into.Tile == op.Tile && bytes.Equal(into.Member, op.Member)
	}
}

func numLess(t kinds.Type, a, b int64) bool {
	if t == kinds.Float {
		return floatOf(a) < floatOf(b)
	}
	return a < b
}

func floatOf(bits int64) float64 { return math.Float64frombits(uint64(bits)) }
func floatBits(f float64) int64  { return int64(math.Float64bits(f)) }
