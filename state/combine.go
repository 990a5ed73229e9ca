package state

import (
	"bytes"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-stream/weir/value"
)

// common is what two mutations of one series of one entity must have in common so that one can represent both, beside
// their Key.
type common uint8

const (
	sameTile common = 1 << iota
	sameMember
)

// Combines reports whether one mutation can represent several events.
func (m Measure) Combines() bool { return measures[m].combine != nil }

// ByTile reports whether only mutations of the same tile are combined.
func (m Measure) ByTile() bool { return measures[m].needs&sameTile != 0 }

// Combine merges a mutation into this one and reports whether it could. Both must change the same series of the same
// entity, and one mutation must be able to express both.
func (m *Mutation) Combine(other *Mutation) bool {
	row := &measures[m.Series.Measure]
	return row.combine != nil && (row.needs&sameTile == 0 || m.Tile == other.Tile) &&
		(m.Text == other.Text || bytes.Equal(m.Key, other.Key) && (row.needs&sameMember == 0 || bytes.Equal(m.Member, other.Member))) &&
		row.combine(m, other)
}

// CombineHash returns a hash that is the same for all mutations of a series of an entity that can be combined.
func (m *Mutation) CombineHash() uint64 {
	const prime = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	needs, hash := measures[m.Series.Measure].needs, uint64(0)
	if needs&sameTile != 0 {
		hash = uint64(m.Tile) * prime
	}
	if needs&sameMember != 0 {
		hash ^= xxhash.Sum64(m.Member)
	}
	if m.Text != nil && len(m.Key) > 0 {
		hash = bits.RotateLeft64(hash, 32) ^ xxhash.Sum64(m.Key)
	}
	return hash
}

// addNumbers adds the number of one mutation to that of the other.
func addNumbers(into, m *Mutation) bool {
	if into.Series.Type != value.Float {
		return addCounts(into, m)
	}
	into.Num = int64(math.Float64bits(floatOf(into.Num) + floatOf(m.Num)))
	return true
}

// addCounts is addNumbers for integers, independent of the field's type.
func addCounts(into, m *Mutation) bool {
	sum := into.Num + m.Num
	if (sum > into.Num) != (m.Num > 0) && m.Num != 0 {
		return false // the state handles the overflow
	}
	into.Num = sum
	return true
}

// chooseNumber keeps the number that an order prefers; see measure.order.
func chooseNumber(order int) func(into, m *Mutation) bool {
	return func(into, m *Mutation) bool {
		less := m.Num < into.Num
		if into.Series.Type == value.Float {
			less = floatOf(m.Num) < floatOf(into.Num)
		}
		if less == (order < 0) {
			into.Num = m.Num
		}
		return true
	}
}

// chooseCandidate keeps the candidate that the measure prefers.
func chooseCandidate(replaces func(c, held Candidate) bool) func(into, m *Mutation) bool {
	return func(into, m *Mutation) bool {
		if replaces(Candidate{m.Num, m.Member}, Candidate{into.Num, into.Member}) {
			into.Num, into.Text = m.Num, m.Text // the key is the same
		}
		return true
	}
}

// keepLatest keeps the later of two times of one value.
func keepLatest(into, m *Mutation) bool {
	into.Num = max(into.Num, m.Num)
	return true
}

// onceIsEnough drops the second mutation: its value counts once in a tile.
func onceIsEnough(_, _ *Mutation) bool { return true }

func floatOf(bits int64) float64 { return math.Float64frombits(uint64(bits)) }
