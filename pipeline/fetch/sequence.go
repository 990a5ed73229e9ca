package fetch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// misplacedError says that a batch states offsets, or a leader epoch, that it cannot have.
type misplacedError struct {
	reason string
	at     int64 // the offset that is to be read there
	states int64 // its base offset, as it says; -1 if that is not what is wrong
	// end is an offset after at, and not after a later batch, as far as that is known; else -1.
	end int64
}

func (e *misplacedError) Error() string { return "misplaced batch: " + e.reason }

// sequence judges where the batches of one answer stand. No checksum covers the base offset of a batch, nor its leader
// epoch. A damaged one would let its reader take other records for read already, or ask for offsets after them. The
// order of batches is not damaged by that: their offsets rise, what lies between two was removed by compaction, and
// nothing lies beyond the high watermark.
type sequence struct {
	next int64 // the offset after the batches so far, or the one that was asked for
	// aligned says that no batch begins before next and ends after it, as far as the log is sound: next is where another
	// batch ended.
	aligned bool
	begun   bool // some batch of this answer has moved next
	// met is what was wrong with the last answer; nil if nothing. A broker searches for what batches state: it may not find
	// that batch where it is, or instead of others.
	met *misplacedError

	highWatermark int64 // 0 if unknown
	leaderEpoch   int32 // of the leader that was asked; -1 if unknown

	absent int64 // how many offsets between batches are in none, or in one that states others
}

// sequenceOf begins with the first batch of an answer.
func sequenceOf(p *PartitionData) sequence {
	return sequence{next: p.Offset, aligned: p.aligned, met: p.misplaced, highWatermark: p.highWatermark, leaderEpoch: p.leaderEpoch}
}

// place takes the next batch, which rest follows, or returns a *misplacedError. A batch that proves to be from before
// the position is moved there. The names in the cases are those of the logs of TestMisplacedBatch that show them.
func (s *sequence) place(b *recordBatch, rest []byte) error {
	following, seen := baseOf(rest)
	overlaps, joins := seen && following <= b.last, seen && following == b.last+1
	// It is what was refused in the last answer. Only the first batch can be: "repaired, and another is where it claimed to
	// be".
	again := s.met != nil && s.met.states == b.base && !s.begun
	switch {
	case b.base < 0 || b.last < b.base || b.last == math.MaxInt64:
		// "negative", "above all numbers", "the last of all numbers"
		return s.refuse(b, rest, "there are no such")

	case s.leaderEpoch >= 0 && b.epoch > s.leaderEpoch:
		// "epoch": what it states of its offsets need not be wrong, so it is not known again by them.
		e := s.refuse(b, rest, "it also states the leader epoch %d, and its leader's is %d", b.epoch, s.leaderEpoch)
		e.states = -1
		return e

	case again && !seen:
		// "found again": the last answer showed what is wrong with it, and this one is too short for that. By itself it
		// would look like a batch after a gap.
		return s.refuse(b, rest, "that was refused before, and nothing follows it yet")

	case overlaps && !s.begun && following <= s.next && (b.base > s.next || again):
		// "set aside before, and still found by what it states", "set aside before, at what it states", "a transaction set
		// aside before": the batch after it has the position or is before it, so it is before the position itself, and the
		// broker found it by what it states. One after it may rightly be where it claims to be. In the middle of an answer a
		// broker does not search, and both are wrong: "two in a row".
		s.met, s.absent = nil, s.absent+b.last-b.base+1
		b.base, b.last = following-1-(b.last-b.base), following-1

	case b.base == s.next && (s.aligned || !overlaps || following > s.next):
		// "repaired": it is where it has to be. If the batch after it overlaps it, that one is wrong: "before the one
		// before". Only if both claim the position, and no batch is known to end there, either may be wrong; see the next
		// case.

	case overlaps:
		// "after the next one", "after the next one, at the position", "after the next one, which is cut", "at a position that
		// the batch after it claims", "two in a row"
		return s.refuse(b, rest, "the batch after it begins at %d", following)

	case b.base > s.next:
		if s.highWatermark > 0 && b.last >= s.highWatermark {
			// "after the end of the log", "after the end of the log, where the position is unknown"
			return s.refuse(b, rest, "the log ends at %d", s.highWatermark)
		}
		if s.met != nil && s.met.at == s.next && !s.begun && !again {
			// "before the position, and so no longer found": the broker passes over what was refused there. It does not if it
			// still sends it, "refused before, and no longer beyond the end", nor where it sends what is before, "removed
			// since, as the batch before shows", nor at another position, "what compaction left after one set aside".
			return &misplacedError{at: s.next, states: s.met.states, end: b.base, reason: fmt.Sprintf(
				"one that states the offset %d has the offsets %d to %d, and the broker does not find it there", s.met.states, s.next, b.base-1)}
		}
		// "what compaction left", "up to the end of the log", "after a gap, where the end is unknown"
		s.absent += b.base - s.next

	// It begins before next.

	case s.begun:
		// "before the one before", "before the one before, as the last"
		return s.refuse(b, rest, "the batch before it ends at %d", s.next-1)

	case joins:
		// "a broker that begins earlier": some do, or make batches anew for each answer. Where the batch after it begins
		// proves where this one is.

	case b.last < s.next:
		// "before the position", "before a position inside of it"
		return s.refuse(b, rest, "%d was asked for", s.next)

	case s.aligned:
		// "overlapping the batch that was read before"
		return s.refuse(b, rest, "a batch that was read before ends at %d", s.next-1)

	default:
		// "a position inside of a batch", where nothing is known of the batches before
	}
	if b.last >= s.next {
		s.next, s.begun, s.aligned = b.last+1, true, true
	}
	return nil
}

func (s *sequence) refuse(b *recordBatch, rest []byte, format string, args ...any) *misplacedError {
	e := &misplacedError{at: s.next, states: b.base, end: -1, reason: fmt.Sprintf(
		"it states the offsets %d to %d, which no checksum covers, but %s", b.base, b.last, fmt.Sprintf(format, args...))}
	if following, seen := baseOf(rest); seen && following > s.next {
		e.end = following
	} else if s.aligned {
		e.end = s.next + (b.last - b.base) + 1 // it begins at next, or later
	}
	return e
}

// baseOf returns the base offset of the batch at the start of raw, which may be cut.
func baseOf(raw []byte) (base int64, ok bool) {
	if len(raw) <= batchMagicAt || raw[batchMagicAt] != 2 {
		return 0, false
	}
	base = int64(binary.BigEndian.Uint64(raw))
	return base, base >= 0
}
