package state

import (
	"bytes"
	"math"

	"github.com/weir-stream/weir/value"
)

// Combine merges a mutation into this one and says whether it could: both must be on the same
// entity, series and key, and one mutation must be able to express both.
func (m *Mutation) Combine(op *Mutation) bool {
	if m.Series != op.Series && m.Series.ID != op.Series.ID {
		return false
	}
	if !bytes.Equal(m.Key, op.Key) {
		return false
	}
	combine := measures[m.Series.Measure].combine
	return combine != nil && combine(m, op)
}

// Combines says whether one mutation may represent several events.
func (m Measure) Combines() bool { return measures[m].combine != nil }

// addNumbers adds the number of one mutation to that of the other.
func addNumbers(into, op *Mutation) bool {
	if into.Series.Type != value.Float {
		return addCounts(into, op)
	}
	if into.Tile != op.Tile {
		return false
	}
	into.Num = int64(math.Float64bits(floatOf(into.Num) + floatOf(op.Num)))
	return true
}

// addCounts is addNumbers for integers, whatever the field's type.
func addCounts(into, op *Mutation) bool {
	if into.Tile != op.Tile {
		return false
	}
	sum := into.Num + op.Num
	if (sum > into.Num) != (op.Num > 0) && op.Num != 0 {
		return false // the state handles overflow
	}
	into.Num = sum
	return true
}

// chooseNumber keeps the number that an order prefers; see measure.order.
func chooseNumber(order int) func(into, op *Mutation) bool {
	return func(into, op *Mutation) bool {
		if into.Tile != op.Tile {
			return false
		}
		less := op.Num < into.Num
		if into.Series.Type == value.Float {
			less = floatOf(op.Num) < floatOf(into.Num)
		}
		if less == (order < 0) {
			into.Num = op.Num
		}
		return true
	}
}

// chooseCandidate keeps the candidate that the measure prefers.
func chooseCandidate(replaces func(c, held Candidate) bool) func(into, op *Mutation) bool {
	return func(into, op *Mutation) bool {
		if into.Tile != op.Tile {
			return false
		}
		if replaces(Candidate{op.Num, op.Member}, Candidate{into.Num, into.Member}) {
			into.Num, into.Member = op.Num, op.Member
		}
		return true
	}
}

// keepLatest keeps the later of two times of one value.
func keepLatest(into, op *Mutation) bool {
	if !bytes.Equal(into.Member, op.Member) {
		return false
	}
	into.Num = max(into.Num, op.Num)
	return true
}

// onceIsEnough is for values that matter only once in a tile.
func onceIsEnough(into, op *Mutation) bool {
	return into.Tile == op.Tile && bytes.Equal(into.Member, op.Member)
}

func floatOf(bits int64) float64 { return math.Float64frombits(uint64(bits)) }
