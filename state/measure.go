package state

import (
	"bytes"
	"math"

	"github.com/weir-stream/weir/value"
)

// Measure is what a series records of an event.
type Measure uint8

// The measures.
const (
	CountEvents  Measure = iota // +1 for every event
	CountValues                 // +1 for every event whose field is not null
	Sum                         // adds the field: exact for Int and Decimal
	Min                         // the least value of the field
	Max                         // the greatest value of the field
	Distinct                    // the set of the field's values
	Approx                      // the field's values in a HyperLogLog
	LastTimes                   // the field's values with their last event time
	Record                      // the columns of the event
	Seen                        // the field's values in filters
	RememberID                  // the event's own ID; see Mutation.Member
	CountHolds                  // +1 for every event that satisfies the condition
	Earliest                    // the least time of an event
	Latest                      // the greatest time of an event
	ValueMoments                // the field's values as Moments
	FirstValue                  // the field's value of the earliest event
	LastValue                   // the field's value of the latest event
	LeastText                   // the least value of a field of strings
	GreatestText                // the greatest value of a field of strings
)

// measure is a row of the table of measures.
type measure struct {
	name   string // hashed into the series' ID: it must never change
	layout Layout
	of     input
	counts bool // its numbers are numbers of events
	wide   bool // its numbers may exceed 64 bits
	// num and member make the Num (0 if nil) and the Member of an event's mutation.
	num    func(Input) int64
	member Member
	// combine merges two mutations that have in common what it needs, and reports whether it could; nil if one mutation
	// never represents several events.
	combine func(into, m *Mutation) bool
	needs   common
	// order tells which of two numbers of a tile is kept: -1 the lesser, 1 the greater, 0 their sum.
	order int
	// replaces reports whether, for a tile of Extremes, the later of two candidates replaces the one kept.
	replaces func(candidate, held Candidate) bool
}

var measures = [...]measure{
	CountEvents: {name: "count", layout: Tiles, of: events, counts: true, num: one, combine: addCounts, needs: sameTile},
	CountValues: {name: "count_values", layout: Tiles, of: field, counts: true, num: one, combine: addCounts, needs: sameTile},
	CountHolds:  {name: "count_holds", layout: Tiles, of: condition, counts: true, num: one, combine: addCounts, needs: sameTile},
	Sum:         {name: "sum", layout: Tiles, of: field, wide: true, num: number, combine: addNumbers, needs: sameTile},
	Min:         {name: "min", layout: Tiles, of: field, num: number, combine: chooseNumber(-1), needs: sameTile, order: -1},
	Max:         {name: "max", layout: Tiles, of: field, num: number, combine: chooseNumber(1), needs: sameTile, order: 1},
	Earliest:    {name: "earliest", layout: Tiles, of: times, num: timeOf, combine: chooseNumber(-1), needs: sameTile, order: -1},
	Latest:      {name: "latest", layout: Tiles, of: times, num: timeOf, combine: chooseNumber(1), needs: sameTile, order: 1},

	Distinct:     {name: "distinct", layout: Members, of: field, member: TextMember, combine: onceIsEnough, needs: sameTile | sameMember},
	Approx:       {name: "approx", layout: Sketches, of: field, member: TextMember, combine: onceIsEnough, needs: sameTile | sameMember},
	Seen:         {name: "seen", layout: Filters, of: field, member: TextMember, combine: onceIsEnough, needs: sameTile | sameMember},
	LastTimes:    {name: "last_times", layout: LastSeen, of: field, num: timeOf, member: TextMember, combine: keepLatest, needs: sameMember},
	ValueMoments: {name: "moments", layout: MomentTiles, of: field, num: number},

	FirstValue: extremes("first_value", timeOf, ValueMember, func(c, held Candidate) bool { return c.Time < held.Time }),
	LastValue:  extremes("last_value", timeOf, ValueMember, func(c, held Candidate) bool { return c.Time >= held.Time }),
	LeastText: extremes("least_text", tileBegin, TextMember,
		func(c, held Candidate) bool { return bytes.Compare(c.Value, held.Value) < 0 }),
	GreatestText: extremes("greatest_text", tileBegin, TextMember,
		func(c, held Candidate) bool { return bytes.Compare(c.Value, held.Value) > 0 }),

	// The mapper makes the mutations of logs and dedup sets from the whole event.
	Record:     {name: "record", layout: Logs, of: events},
	RememberID: {name: "id", layout: DedupSet, of: events},
}

// extremes returns the row of a measure that keeps one of the candidates of a tile.
func extremes(name string, num func(Input) int64, member Member, replaces func(c, held Candidate) bool) measure {
	return measure{
		name: name, layout: Extremes, of: field, num: num, member: member, combine: chooseCandidate(replaces), needs: sameTile, replaces: replaces,
	}
}

// input is the part of an event that a measure reads.
type input uint8

const (
	field input = iota
	events
	condition
	times
)

// Input is what the number of a mutation is computed from.
type Input struct {
	Time  int64        // of the event, in milliseconds
	Begin int64        // of the event's tile, in milliseconds
	Value *value.Value // of the field, not null; nil for a measure of events
}

func one(Input) int64          { return 1 }
func timeOf(in Input) int64    { return in.Time }
func tileBegin(in Input) int64 { return in.Begin } // the tile's begin packs shortest

func number(in Input) int64 {
	if in.Value.Type == value.Float {
		return int64(math.Float64bits(in.Value.Flt))
	}
	return in.Value.Num
}

// Member is the encoding of a mutation's Member.
type Member uint8

// The encodings of members.
const (
	NoMember    Member = iota
	TextMember         // the value as text
	ValueMember        // the value, encoded by AppendValue
)

// Candidate is a value that a tile may keep, and the time of its event.
type Candidate struct {
	Time  int64
	Value []byte
}

// String returns the measure's name.
func (m Measure) String() string { return measures[m].name }

// Layout returns the layout of the measure.
func (m Measure) Layout() Layout { return measures[m].layout }

// Single reports whether the measure keeps one value of each tile.
func (m Measure) Single() bool { return m.Layout() == Tiles || m.Layout() == Extremes }

// Counts reports whether the measure is a number of events.
func (m Measure) Counts() bool { return measures[m].counts }

// Wide reports whether the measure's numbers may exceed 64 bits.
func (m Measure) Wide() bool { return measures[m].wide }

// OfEvents reports whether the measure reads no field of the event.
func (m Measure) OfEvents() bool { return measures[m].of != field }

// OfCondition reports whether the measure reads a condition.
func (m Measure) OfCondition() bool { return measures[m].of == condition }

// OfTimes reports whether the measure reads the event's time.
func (m Measure) OfTimes() bool { return measures[m].of == times }

// Num returns the number in the mutation of an event.
func (m Measure) Num(in Input) int64 {
	if num := measures[m].num; num != nil {
		return num(in)
	}
	return 0
}

// Member returns the encoding of the mutation's Member.
func (m Measure) Member() Member { return measures[m].member }

// Order tells which of two numbers of a tile is kept: -1 the lesser, 1 the greater, 0 their sum.
func (m Measure) Order() int { return measures[m].order }

// Replaces reports whether, for a tile of Extremes, the later of two candidates replaces the one kept.
func (m Measure) Replaces(candidate, held Candidate) bool {
	return measures[m].replaces(candidate, held)
}
