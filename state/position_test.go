package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is parsed is a position, and is written as it was.
func FuzzParsePosition(f *testing.F) {
	for _, text := range []string{
		"0:-1:", "12:3:log", "12+40/5:3:log", "12+12/5:3:", "12+40/0:3:", "12+40/64:3:", "12+40/63:3:", "12+40:3:", "12/5:3:", "-1:3:", "12+:3:", "1:2", "+1:2:3", "012:3:",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePosition(text)
		if err != nil || text == "" {
			if p != NoPosition {
				t.Errorf("%q is %v, with the error %v", text, p, err)
			}
			return
		}
		if p.Offset < 0 || p.Slices < 0 || p.Slices >= ShardSlices || p.Slices > 0 && p.Ahead <= p.Offset || p.Slices == 0 && p.Ahead != 0 {
			t.Fatalf("%q is %+v", text, p)
		}
		if again, err := ParsePosition(p.String()); again != p || err != nil {
			t.Errorf("%q is %+v, written as %s", text, p, p)
		}
	})
}

func TestBadPositions(t *testing.T) {
	for _, text := range []string{
		"12", "12:3", "x:3:log", "-1:3:log", "12:y:log", "12:3:log:more",
		"12+40:3:log", "12+40/:3:log", "12+40/0:3:log", "12+40/64:3:log", "12+12/5:3:log", "12+x/5:3:log", "12/5:3:log",
	} {
		if p, err := ParsePosition(text); err == nil || err.Error() != `"`+text+`" is not a position` {
			t.Errorf("%s is %+v, with the error %v", text, p, err)
		}
	}
}

func position(t *testing.T, text string) Position {
	t.Helper()
	p, err := ParsePosition(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPositionsWithSlicesAhead(t *testing.T) {
	p := position(t, "20+50/8:3:log")
	for slice, want := range map[int]int64{0: 50, 7: 50, 8: 20, 63: 20} {
		if got := p.In(slice); got != want {
			t.Errorf("slice %d is at %d, want %d", slice, got, want)
		}
	}
	for got, want := range map[Position]string{
		p.To(30):                                 "30+50/8:3:log",
		p.To(50):                                 "50:3:log",
		p.To(60):                                 "60:3:log",
		p.Until(60):                              "20+50/8:3:log",
		p.Until(40):                              "20+40/8:3:log",
		p.Until(20):                              "20:3:log",
		p.Until(10):                              "10:3:log",
		position(t, "20:3:log").WithAhead(50, 8): "20+50/8:3:log",
		position(t, "20+50/7:3:log").WithAhead(50, 8):    "20+50/8:3:log",
		position(t, "20:3:log").To(21).WithAhead(22, 63): "21+22/63:3:log",
		position(t, "9:-1:").Until(9):                    "9:-1:",
		position(t, "20+50/8:3:log").Until(50).To(50):    "50:3:log",
		NoPosition.To(7): "7:-1:",
	} {
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	progress := []Position{position(t, "30:3:log"), p}
	if low, high := Lowest(progress), Highest(progress); low != 20 || high != 50 {
		t.Errorf("the progress reaches from %d to %d, want 20 to 50", low, high)
	}
	if got := Highest([]Position{NoPosition}); got != -1 {
		t.Errorf("a shard without a position has reached %d", got)
	}
}

// A position continues a known one if every slice is as far, some slice is further, and the leader is that of the known records.
func TestPositionContinues(t *testing.T) {
	for _, c := range []struct {
		found, known string
		epoch        int32
		want         bool
	}{
		{"21:3:log", "20:3:log", 3, true},
		{"21:4:log", "20:4:log", 3, true}, // the known one is of a leader without records
		{"20:3:log", "20:3:log", 3, false},
		{"19:3:log", "20:3:log", 3, false},
		{"21:3:other", "20:3:log", 3, false},
		{"21:4:log", "20:3:log", 4, true},
		{"21:5:log", "20:3:log", 4, false}, // of a later leader
		{"21:3:log", "20:3:log", 4, false}, // of an earlier one
		{"20+50/8:3:log", "20:3:log", 3, true},
		{"20:3:log", "20+50/8:3:log", 3, false},
		{"20+50/9:3:log", "20+50/8:3:log", 3, true},
		{"20+50/7:3:log", "20+50/8:3:log", 3, false},
		{"25+50/8:3:log", "20+50/8:3:log", 3, true},
		{"30:3:log", "20+50/8:3:log", 3, false}, // the lower slices have gone back
		{"50:3:log", "20+50/8:3:log", 3, true},
		{"20+40/9:3:log", "20+50/8:3:log", 3, false},
	} {
		if got := position(t, c.found).Continues(position(t, c.known), c.epoch); got != c.want {
			t.Errorf("%s continues %s, by records of epoch %d: %v, want %v", c.found, c.known, c.epoch, got, c.want)
		}
	}
}

// The offsets between two positions are those of the slices that have the same.
func TestRangesBetween(t *testing.T) {
	want := []OffsetRange{{From: 50, To: 60, Without: ^slicesFrom(0, 4)}, {From: 10, To: 60, Without: ^slicesFrom(4, 9)}, {From: 10, To: 20, Without: ^slicesFrom(9, 64)}}
	if diff := cmp.Diff(want, RangesBetween(position(t, "10+50/4:3:log"), position(t, "20+60/9:3:log"))); diff != "" {
		t.Errorf("the ranges differ (-want +got):\n%s", diff)
	}
}
