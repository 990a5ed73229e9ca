package deadletter

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/state"
)

// simulated is a namespace with one event: its original record, at offset 0, and its copies.
type simulated struct {
	*testing.T
	state   *passed
	good    bool           // the definitions can use the event
	copies  []*record.Copy // by offset, from 1 on
	letter  *Letter        // not yet replayed; nil for none
	skipped []*backfill.Skipped
	series  []*simulatedSeries
	story   string
}

// simulatedSeries is fed live from an offset on, and by a fill before it.
type simulatedSeries struct {
	id     string
	live   int
	filled int // what the fill has read
	counts int
}

var simulatedPartition = state.Partition{Topic: "tx"}

// reads lets a series read the record at an offset, and reports whether it could use it.
func (e *simulated) reads(s *simulatedSeries, offset int) bool {
	if e.good && (offset == 0 || e.copies[offset-1].Has(s.id)) {
		s.counts++
	}
	return e.good
}

// write appends a record, which live events of all series feed to them.
func (e *simulated) write(at int) {
	if !e.good {
		e.letter = &Letter{Source: RecordID{"tx", 0, int64(at)}, Copies: e.copies[:at:at]}
	}
	for _, s := range e.series {
		e.reads(s, at)
	}
}

// add begins a series, which is filled unless it is there from the start.
func (e *simulated) add(filled bool) {
	s := &simulatedSeries{id: fmt.Sprintf("s%04d", len(e.series))}
	e.state.keep("tx", s.id)
	if filled {
		s.live = len(e.copies) + 1
		e.state.fill(e.T, &state.Fill{}, s.id, simulatedPartition, fmt.Sprintf("%d;0-%d", state.MinTime, s.live))
	}
	e.series = append(e.series, s)
}

// fill reads one more record for each of some series.
func (e *simulated) fill(which func() bool) {
	for _, s := range e.series {
		if s.filled < s.live && which() {
			if !e.reads(s, s.filled) {
				e.skipped = append(e.skipped, &backfill.Skipped{Topic: "tx", Offsets: []int64{int64(s.filled)}, Series: []string{s.id}})
			}
			s.filled++
		}
	}
}

// replay replays the letter, if there is one.
func (e *simulated) replay() {
	l := e.letter
	if l == nil {
		return
	}
	p, err := newPassage(e.Context(), e.state, []*Letter{l}, e.skipped)
	if err != nil {
		e.Fatal(err)
	}
	e.letter = nil
	e.copies = append(e.copies, &record.Copy{Partition: simulatedPartition, Offset: l.Source.Offset, Timestamps: l.timestamps(), Series: p.lacking(l)})
	e.write(len(e.copies))
}

// In whatever order features are added and filled, and definitions corrected, and however often the letter of an event is
// replayed in between, each feature has the event once in the end.
func TestReplaysInRandomHistories(t *testing.T) {
	for seed := range uint64(20_000) {
		random := rand.New(rand.NewPCG(seed, 0))
		e := &simulated{T: t, state: newPassed()}
		e.add(false)
		e.write(0)
		for range 4 + random.IntN(12) {
			switch n := random.IntN(10); {
			case n < 3:
				e.story += "replay, "
				e.replay()
			case n < 6:
				e.story += "add, "
				e.add(true)
			case n < 9:
				e.story += "fill, "
				e.fill(func() bool { return random.IntN(2) > 0 })
			default:
				e.story += "correct, "
				e.good = true
			}
		}
		e.good = true
		if random.IntN(2) > 0 {
			e.story += "replay, "
			e.replay()
		}
		for range len(e.copies) + 1 {
			e.fill(func() bool { return true })
		}
		e.replay()
		for _, s := range e.series {
			if s.counts != 1 {
				t.Fatalf("seed %d: %sand correct, fill and replay: %s, which live events feed from record %d on, counts the event %d times",
					seed, e.story, s.id, s.live, s.counts)
			}
		}
	}
}
