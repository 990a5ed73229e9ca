package pipeline

import (
	"testing"

	"github.com/weir-stream/weir/state"
)

// A processor lists its latest dead letters, and none from the part of a batch that is read again.
func TestLatestDeadLettersAreListed(t *testing.T) {
	t.Parallel()
	p := &Processor{}
	if letters := p.DeadLetters(); len(letters) > 0 {
		t.Errorf("%d dead letters are listed before there are any", len(letters))
	}
	one := &assignedPartition{Partition: state.Partition{Topic: "payments", ID: 1}}
	for offset := range int64(maxRecent + 5) {
		b := newBatch()
		b.dead = append(b.dead, deadLetter{rangeIndex: b.rangeOf(one), offset: offset, due: true}, deadLetter{offset: offset + 1}) // the other was written before
		b.Ranges[0].Behind = offset == maxRecent
		p.stats.add(b)
	}
	letters := p.DeadLetters()
	if len(letters) != maxRecent {
		t.Fatalf("%d dead letters are listed, want %d", len(letters), maxRecent)
	}
	want := int64(maxRecent + 4)
	for _, d := range letters {
		if d.Offset != want || d.Partition != one.Partition {
			t.Errorf("got %+v, want offset %d of %v", d, want, one.Partition)
		}
		if want--; want == maxRecent {
			want--
		}
	}
}

// A batch that was made before the records were read again ends before their dead letters, which stay known as written.
func TestWrittenLettersAreForgottenOnceApplied(t *testing.T) {
	t.Parallel()
	p, letter, written := &assignedPartition{}, &deadLetter{offset: 7}, writtenLetters{}
	written.add(p.underPlan, letter)
	for _, step := range []struct {
		until int64
		known bool
	}{{5, true}, {7, true}, {8, false}} {
		b := newBatch()
		p.position = step.until
		b.rangeOf(p)
		if written.forget(b); written.has(p.underPlan, letter) != step.known {
			t.Errorf("applied until %d: known is %v, want %v", step.until, !step.known, step.known)
		}
	}
	written.add(p.underPlan, letter)
	if other := (&deadLetter{offset: 7, timestamp: 1}); written.has(p.underPlan, other) {
		t.Error("another letter at the same offset counts as written")
	}
}
