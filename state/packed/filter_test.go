package packed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	library "github.com/bits-and-blooms/bloom/v3"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/state"
)

func filterSeries(most int, rate float64) *state.Series {
	return &state.Series{ID: "seen0", Measure: state.Seen, Tile: day, Max: most, Rate: rate}
}

// valueOf returns the n-th of a sequence of distinct values.
func valueOf(n int) []byte { return binary.BigEndian.AppendUint64([]byte("v"), uint64(n)) }

func meet(held State, s *state.Series, tile int64, from, to int) {
	for n := from; n < to; n++ {
		held.Apply(&state.Mutation{Series: s, Tile: tile, Text: &state.Text{Member: valueOf(n)}})
	}
}

// No value that was added is ever missed, for any sizes, rates and orders, also when packed states are merged that both
// have layers.
func TestNoFalseNegatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := filterSeries(rapid.IntRange(1, 300).Draw(t, "max"), rapid.SampledFrom([]float64{0.5, 0.1, 0.003, 1e-6, 1e-12, 0}).Draw(t, "rate"))
		held := New(s)
		met := map[int64]int{}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			other, tile := New(s), rapid.Int64Range(0, 2).Draw(t, "tile")
			from := met[tile] / 2 // half of them were added before
			met[tile] += rapid.IntRange(0, 900).Draw(t, "values")
			meet(other, s, tile, from, met[tile])
			if rapid.Bool().Draw(t, "packed") {
				if err := held.Merge(other.Append(nil)); err != nil {
					t.Fatal(err)
				}
			} else {
				meet(held, s, tile, from, met[tile])
			}
		}
		for tile, n := range met {
			if n == 0 {
				continue
			}
			filter := held.Read(&state.Read{Series: s, First: tile, Last: tile}).Filter
			for i := range n {
				if !filter.Has(valueOf(i)) {
					t.Fatalf("value %d of %d in tile %d is not found", i, n, tile)
				}
			}
		}
	})
}

// The rate of false positives of a window is the stated one, and within the bound for its tiles, for fewer and for many
// more values than expected.
func TestFalsePositives(t *testing.T) {
	const tiles, probes = 7, 400_000
	for _, test := range []struct {
		most, values int // expected in each tile, and added
		fp           float64
	}{
		{1000, 20, 0.01}, {1000, 400, 0.01}, {1000, 1000, 0.01}, {1000, 30_000, 0.01},
		{10, 5000, 0.05}, {1, 300, 0.2}, {20_000, 20_000, 0.001}, {100, 3000, 0.5},
	} {
		s := filterSeries(test.most, test.fp/tiles)
		held := New(s)
		for tile := range tiles {
			meet(held, s, int64(tile), tile*test.values, (tile+1)*test.values)
		}
		filter := held.Read(&state.Read{Series: s, First: 0, Last: tiles - 1}).Filter
		stated, found := filter.FalsePositiveRate(), 0
		for n := range probes {
			if filter.Has(valueOf(math.MaxInt32 + n)) {
				found++
			}
		}
		// Allow five standard deviations of the count at the stated rate.
		wanted := stated * probes
		slack := 5*math.Sqrt(wanted) + 1
		if got := float64(found); got > wanted+slack || got < 0.5*wanted-slack {
			t.Errorf("%+v: %v of %d values are found that never occurred, the stated rate is %v", test, got, probes, stated)
		}
		if stated > test.fp {
			t.Errorf("%+v: the stated rate is %v, above the chosen one", test, stated)
		}
		if few := test.values < 100 && test.most > 100; few != (stated == 0) {
			t.Errorf("%+v: the stated rate is %v, want 0 for few values only", test, stated)
		}
	}
}

// A Bloom filter with the same size and values has as many bits set, and as many false positives,
// as that of a library.
func TestBloomFilterEqualsLibrary(t *testing.T) {
	const probes = 400_000
	var secret state.Secret
	for _, test := range []struct {
		values int
		rate   float64
	}{{1000, 0.01}, {20_000, 0.001}, {500, 0.2}} {
		size, hashes := state.BloomSize(test.values, test.rate)
		ours := bloom{bits: make([]byte, size), hashes: hashes}
		theirs := library.New(uint(8*size), uint(hashes))
		for n := range test.values {
			ours.add(secret.Hash(valueOf(n)))
			theirs.Add(valueOf(n))
		}
		// The number of set bits deviates by less than the root of the bits.
		set := int(theirs.BitSet().Count())
		if off := math.Abs(float64(ours.ones - set)); off > 5*math.Sqrt(float64(8*size)) {
			t.Errorf("%+v: %d of %d bits are set, in the library's filter %d", test, ours.ones, 8*size, set)
		}
		var found, foundThere int
		for n := range probes {
			v := valueOf(math.MaxInt32 + n)
			if ours.has(secret.Hash(v)) {
				found++
			}
			if theirs.Test(v) {
				foundThere++
			}
		}
		if off, expected := math.Abs(float64(found-foundThere)), float64(probes)*test.rate; off > 0.1*expected+7*math.Sqrt(expected) {
			t.Errorf("%+v: %d of %d values are found that never occurred, by the library %d", test, found, probes, foundThere)
		}
		// The library uses the textbook's estimate, without whole numbers of hashes.
		if bits, _ := library.EstimateParameters(uint(test.values), test.rate); math.Abs(float64(8*size)/float64(bits)-1) > 0.05 {
			t.Errorf("%+v: %d bits, the library takes %d", test, 8*size, bits)
		}
	}
}

// A value takes eight bytes while there are few, and later as much as in a Bloom filter of that rate. With more values
// than expected it takes little more.
func TestFilterSize(t *testing.T) {
	for _, test := range []struct{ values, least, most int }{
		{1, 11, 11}, {10, 83, 83}, {100, 804, 804}, {1000, 2300, 2350}, {8000, 18_000, 27_000},
	} {
		s := filterSeries(1000, 0.01/30)
		held := New(s)
		meet(held, s, 20514, 0, test.values) // a day of 2026
		if got := len(held.Append(nil)); got < test.least || got > test.most {
			t.Errorf("%d values take %d bytes, want %d to %d", test.values, got, test.least, test.most)
		}
	}
}

// When a series allows a smaller rate, its state states the rate that it has, and continues with the smaller one.
func TestChangedRate(t *testing.T) {
	before, after := filterSeries(100, 0.1), filterSeries(100, 0.001)
	held := New(before)
	meet(held, before, 0, 0, 500)
	changed := New(after)
	if err := changed.Merge(held.Append(nil)); err != nil {
		t.Fatal(err)
	}
	all := &state.Read{Series: after, First: 0, Last: 0}
	was := held.Read(all).Filter.FalsePositiveRate()
	if got := changed.Read(all).Filter.FalsePositiveRate(); got != was || got < 0.001 {
		t.Errorf("the stated rate is %v, want %v", got, was)
	}
	meet(changed, after, 0, 500, 1000)
	if got := changed.Read(all).Filter.FalsePositiveRate(); got > was+0.001 {
		t.Errorf("the stated rate is %v after more values, and was %v before", got, was)
	}
}

// A filter that cannot have been packed is refused.
func TestDamagedFilters(t *testing.T) {
	s := filterSeries(10, 0.01)
	whole := New(s)
	meet(whole, s, 3, 0, 40)
	packed := whole.Append(nil)
	for name, damaged := range map[string][]byte{
		"nothing in it":  {0, 0},
		"hashes missing": {0, 8, 1, 2, 3, 4, 5, 6, 7, 8},
		"no layers":      {0, 1, 0},
		"an empty layer": {0, 1, 1, 0, 3},
		"no hashes":      {0, 1, 1, 1, 0, 255},
		"too many bits":  {0, 1, 1, 1, 65, 255},
		"cut off":        packed[:len(packed)-1],
		"too long":       append(packed[:len(packed):len(packed)], 0),
		"too many":       append([]byte{0}, 254, 255, 255, 255, 255, 255, 255, 255, 255, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if err := New(s).Merge(damaged); err != errPacked {
				t.Errorf("merging the damaged %x: got error %v", damaged, err)
			}
		})
	}
}

// Tiles outside of the window are not used.
func TestFiltersOfAWindow(t *testing.T) {
	s := filterSeries(3, 0.01)
	held := New(s)
	for tile := range 6 {
		meet(held, s, int64(tile), 100*tile, 100*tile+2)
	}
	random := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		first := random.Int64N(6)
		last := first + random.Int64N(6-first)
		filter := held.Read(&state.Read{Series: s, First: first, Last: last}).Filter
		for tile := range 6 {
			want := first <= int64(tile) && int64(tile) <= last
			if got := filter.Has(valueOf(100*tile + 1)); got != want {
				t.Errorf("tiles %d to %d: the value of tile %d is found: %v, want the opposite", first, last, tile, got)
			}
		}
	}
	if filter := held.Read(&state.Read{Series: s, First: 6, Last: 9}).Filter; filter != nil {
		t.Errorf("tiles without events have values: %s", fmt.Sprint(filter))
	}
}

// However many values are met, at most the stated rate of those that were not is found. The values that the filter has
// no room for make it full, so that of others nothing is said. Packing, merging and squeezing change nothing of that.
func TestFloodedFilter(t *testing.T) {
	const probes, fp = 20_000, 0.01
	for _, most := range []int{100, 1000, 14_563, 100_000} {
		s := filterSeries(1000, fp)
		s.Bytes, s.Tiles = most, 1
		held := New(s)
		read := &state.Read{Series: s, First: 0, Last: 0}
		for from := 0; from < 100_000; from += 5000 {
			meet(held, s, 0, from, from+5000)
			packed := Fit(nil, s, held)
			if len(packed) > most {
				t.Errorf("%d bytes: %d are taken", most, len(packed))
			}
			again := New(s)
			for range 2 { // merging twice is merging once
				if err := again.Merge(packed); err != nil {
					t.Fatal(err)
				}
			}
			held = again
		}
		filter, found := held.Read(read).Filter, 0
		for n := range probes {
			if filter.Has(valueOf(math.MaxInt32 + n)) {
				found++
			}
		}
		if stated := filter.FalsePositiveRate(); stated > fp || float64(found) > stated*probes+5*math.Sqrt(fp*probes)+1 {
			t.Errorf("%d bytes: %d of %d values are found that never occurred, the stated rate is %v", most, found, probes, stated)
		}
		missed := 0
		for n := range 100_000 {
			if !filter.Has(valueOf(n)) {
				missed++
			}
		}
		if missed > 0 && !filter.Full() {
			t.Errorf("%d bytes: %d values are missed, and the filter does not say that it is full", most, missed)
		}
		if most < 100_000 && !filter.Full() {
			t.Errorf("%d bytes: the filter has room for 100,000 values", most)
		}
	}
}

// However values are spread over tiles, those that were found once stay found, a filter that lacks some says so, the
// filters stay within the bytes of their series, and each tile has room for its share of them. Packing and merging
// changes nothing.
func TestFiltersShareTheirRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := filterSeries(rapid.SampledFrom([]int{1, 10, 300, 1000}).Draw(t, "max"), rapid.SampledFrom([]float64{0.4, 0.01, 1e-6, 0}).Draw(t, "rate"))
		s.Tiles = rapid.SampledFrom([]int{1, 2, 31, 1440}).Draw(t, "tiles")
		s.Bytes = rapid.SampledFrom([]int{1, 4096, 14_563, 262_144}).Draw(t, "bytes")
		held := New(s)
		fitting := s.Tiles*leastFilter <= s.Bytes/2
		known, met := map[int64][]int{}, map[int64]int{}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			tile := rapid.Int64Range(0, int64(min(8, s.Tiles)-1)).Draw(t, "tile")
			from := met[tile]
			met[tile] += rapid.SampledFrom([]int{1, 7, 60, 900, 9000}).Draw(t, "values")
			meet(held, s, tile, from+1_000_000*int(tile), met[tile]+1_000_000*int(tile))
			packed := held.Append(nil)
			if fitting && len(packed) > s.Bytes {
				t.Fatalf("step %d: the filters take %d bytes, want at most %d", step, len(packed), s.Bytes)
			}
			if rapid.Bool().Draw(t, "packed") {
				held = New(s)
				if err := held.Merge(packed); err != nil {
					t.Fatal(err)
				}
				if again := held.Append(nil); !bytes.Equal(again, packed) {
					t.Fatalf("step %d: merged and packed again, %d bytes became others", step, len(packed))
				}
			}
			for tile, n := range met {
				filter := held.Read(&state.Read{Series: s, First: tile, Last: tile}).Filter
				found := 0
				for i := range n {
					if filter.Has(valueOf(i + 1_000_000*int(tile))) {
						found++
					} else if !filter.Full() {
						t.Fatalf("step %d: value %d of tile %d is not found, and the filter is not full", step, i, tile)
					}
				}
				if least := min(n, max(8, (s.Bytes/(2*s.Tiles)-overhead)/hashSize)); found < least {
					t.Fatalf("step %d: %d of %d values of tile %d are found, want at least %d", step, found, n, tile, least)
				}
				for _, i := range known[tile] {
					if !filter.Has(valueOf(i)) {
						t.Fatalf("step %d: value %d of tile %d was found before, and is not any more", step, i, tile)
					}
				}
				for i := max(0, n-20); i < n; i++ {
					if v := i + 1_000_000*int(tile); filter.Has(valueOf(v)) {
						known[tile] = append(known[tile], v)
					}
				}
			}
		}
	})
}
