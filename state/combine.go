package state

import (
	"bytes"
	"math"

	"github.com/weir-stream/weir/value"
)

// Combine merges a mutation into this one and reports whether it could. Both must change the same key of the same
// series of the same entity, and one mutation must be able to express both.
func (m *Mutation) Combine(other *Mutation) bool {
	if m.Series != other.Series && m.Series.ID != other.Series.ID {
		return false
	}
	if !bytes.Equal(m.Key, other.Key) {
		return false
	}
	combine := measures[m.Series.Measure].combine
	return combine != nil && combine(m, other)
}

// Combines reports whether one mutation can represent several events.
func (m Measure) Combines() bool { return measures[m].combine != nil }

// addNumbers adds the number of one mutation to that of the other.
func addNumbers(into, m *Mutation) bool {
	if into.Series.Type != value.Float {
		return addCounts(into, m)
	}
	if into.Tile != m.Tile {
		return false
	}
	into.Num = int64(math.Float64bits(floatOf(into.Num) + floatOf(m.Num)))
	return true
}

// addCounts is addNumbers for integers, independent of the field's type.
func addCounts(into, m *Mutation) bool {
	if into.Tile != m.Tile {
		return false
	}
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
		if into.Tile != m.Tile {
			return false
		}
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
		if into.Tile != m.Tile {
			return false
		}
		if replaces(Candidate{m.Num, m.Member}, Candidate{into.Num, into.Member}) {
			into.Num, into.Member = m.Num, m.Member
		}
		return true
	}
}

// keepLatest keeps the later of two times of one value.
func keepLatest(into, m *Mutation) bool {
	if !bytes.Equal(into.Member, m.Member) {
		return false
	}
	into.Num = max(into.Num, m.Num)
	return true
}

// onceIsEnough drops the second mutation: its value counts once in a tile.
func onceIsEnough(into, m *Mutation) bool {
	return into.Tile == m.Tile && bytes.Equal(into.Member, m.Member)
}

func floatOf(bits int64) float64 { return math.Float64frombits(uint64(bits)) }
