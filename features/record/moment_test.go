package record

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plainDateTime parses what time.Parse does, or leaves it to it.
func TestPlainDateTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "at"), 0).UTC()
		text := []byte(at.Format(time.DateTime))
		if rapid.Bool().Draw(t, "changed") {
			text[rapid.IntRange(0, len(text)-1).Draw(t, "place")] = rapid.SampledFrom([]byte("0123456789-: T.")).Draw(t, "byte")
		}
		ms, ok := plainDateTime(text)
		want, err := time.Parse(time.DateTime, string(text))
		if ok && (err != nil || ms != want.UnixMilli()) {
			t.Fatalf("%s is %d, want %d (%v)", text, ms, want.UnixMilli(), err)
		}
		if string(text) == at.Format(time.DateTime) && ok != (at.Day() <= 28) {
			t.Fatalf("%s: accepted is %v, want acceptance of all days up to the 28th only", text, ok)
		}
	})
}
