package state

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/value"
)

// Mutations are combined if what their measure needs is the same, and those that can be combined have one hash.
func TestCombine(t *testing.T) {
	ofMembers := []Measure{Distinct, Approx, Seen, LastTimes}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) Mutation {
			return Mutation{
				Tile: rapid.Int64Range(1, 2).Draw(t, label), Num: rapid.Int64Range(-9, 9).Draw(t, label),
				Text: &Text{
					Member: []byte(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, label)),
					Key:    []byte(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, label)),
				},
			}
		}
		first, second := draw("first"), draw("second")
		for measure := range measures {
			series := &Series{Measure: Measure(measure), Type: value.Int}
			a, b := first, second
			a.Series, b.Series = series, series
			want := series.Measure.Combines() && string(a.Key) == string(b.Key) &&
				(a.Tile == b.Tile || series.Measure == LastTimes) &&
				(string(a.Member) == string(b.Member) || !slices.Contains(ofMembers, series.Measure))
			hashes, text := [2]uint64{a.CombineHash(), b.CombineHash()}, *first.Text
			if got := a.Combine(&b); got != want {
				t.Fatalf("%s: %v combined with %v: %v, want %v", series.Measure, first, second, got, want)
			}
			if series.Measure.Combines() && (hashes[0] == hashes[1]) != want {
				t.Errorf("%s: hashes %x and %x, want the same: %v", series.Measure, hashes[0], hashes[1], want)
			}
			if now := *first.Text; string(now.Member) != string(text.Member) || string(now.Key) != string(text.Key) {
				t.Fatalf("%s: combining changed a text of the batch from %q to %q", series.Measure, text, now)
			}
		}
	})
}

// A sum that does not fit into 64 bits stays two mutations.
func TestCombineOverflow(t *testing.T) {
	for _, n := range []int64{math.MaxInt64, math.MinInt64} {
		a := Mutation{Series: &Series{Measure: Sum, Type: value.Int}, Num: n}
		if b := a; a.Combine(&b) || a.Num != n {
			t.Errorf("twice %d was combined to %d", n, a.Num)
		}
	}
}
