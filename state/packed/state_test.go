package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

const day = 24 * 60 * 60 * 1000

// everySeries are series of every measure, of integers and of floats.
func everySeries() (list []*state.Series) {
	for m := state.CountEvents; m <= state.RememberID; m++ {
		for _, t := range []value.Type{value.Decimal, value.Float} {
			s := &state.Series{ID: fmt.Sprintf("s%04d", len(list)), Measure: m, Type: t, Tile: day, Keep: 8 * day, Max: 12, Rate: 0.05}
			if stored := m.Layout(); stored == state.LastSeen || stored == state.Logs {
				s.Tile = 1
			}
			list = append(list, s)
		}
	}
	return list
}

// randomMutation returns a mutation with one of few tiles, members and numbers.
func randomMutation(random *rand.Rand, s *state.Series) *state.Mutation {
	time := 100*day + random.Int64N(12*day)
	mutation := &state.Mutation{Series: s, Tile: s.TileOf(time), Num: 1, Text: new(state.Text)}
	switch s.Measure {
	case state.Sum, state.Min, state.Max:
		mutation.Num = random.Int64N(2000) - 1000
		if s.Type != value.Float && random.IntN(8) == 0 {
			mutation.Num = int64(random.Uint64()) // sums exceed 64 bits
		}
		if s.Type == value.Float {
			mutation.Num = int64(math.Float64bits(float64(mutation.Num) / 4))
		}
	case state.RememberID:
		mutation.Member = strconv.AppendInt(nil, random.Int64(), 10)
	case state.Distinct, state.Approx, state.LastTimes, state.Seen:
		mutation.Member, mutation.Num = []byte(strings.Repeat("m", random.IntN(3))+fmt.Sprint(random.IntN(30))), time
	case state.Record:
		mutation.Member = state.AppendLogRecord(nil, append(state.AppendLogTime(nil, time), make([]byte, random.IntN(200))...))
	}
	return mutation
}

// none reports that nothing is garbage.
func none(uint32) bool { return false }

// look returns everything that a state reads, in the tiles of a window and in all tiles.
func look(s *state.Series, held State) string {
	text := ""
	for _, r := range []state.Read{
		{Series: s, First: math.MinInt64, Last: math.MaxInt64},
		{Series: s, First: 103 * day / max(1, s.Tile), Last: 106*day/max(1, s.Tile) - 1},
	} {
		windowState := held.Read(&r)
		slices.Sort(windowState.Members)
		if filter := windowState.Filter; filter != nil {
			for n := range 100 {
				windowState.Members = append(windowState.Members, fmt.Sprint(n, filter.Has(fmt.Append(nil, n)), filter.Has(fmt.Append(nil, "m", n))))
			}
			windowState.Members, windowState.Filter = append(windowState.Members, fmt.Sprint(filter.FalsePositiveRate())), nil
		}
		text += fmt.Sprintf("%+v\n", windowState)
	}
	return text
}

// Packing mutations, one or several to a section, appending the sections, and merging or compacting them at any moment
// gives the same as applying the mutations.
func TestPackedEqualsApplied(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	list := everySeries()
	known := func(tag uint32) *state.Series {
		i := slices.IndexFunc(list, func(s *state.Series) bool { return s.Tag() == tag })
		return list[i]
	}
	for range 300 {
		applied := map[*state.Series]State{}
		var packed []byte
		var packer Packer
		for range random.IntN(40) {
			s := list[random.IntN(len(list))]
			if applied[s] == nil {
				applied[s] = New(s)
			}
			packer.Begin(s)
			for range 1 + random.IntN(4) {
				mutation := randomMutation(random, s)
				applied[s].Apply(mutation)
				packer.Add(mutation)
			}
			packed = packer.End(packed)
			if random.IntN(10) > 0 {
				continue
			}
			var err error
			if packed, err = new(Compactor).Compact(nil, packed, known, none, 0, Nonce{1}); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range list {
			held, want := New(s), applied[s]
			err := Sections(packed, func(tag uint32, body []byte) error {
				if tag == s.Tag() {
					return held.Merge(body)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = New(s)
			}
			if diff := cmp.Diff(look(s, want), look(s, held)); diff != "" {
				t.Fatalf("%s of %s (-applied +packed):\n%s", s.Measure, s.Type, diff)
			}
			again := New(s)
			if err := again.Merge(held.Append(nil)); err != nil || look(s, again) != look(s, held) {
				t.Fatalf("%s of %s, packed once more: error %v, state %s", s.Measure, s.Type, err, look(s, again))
			}
		}
	}
}

// Numbers of 64 bits are packed as they were before sums had 128 bits. Packed numbers are read back; truncated or too
// long ones are refused.
func TestWideVarints(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	for range 3000 {
		num, carry := int64(random.Uint64())>>random.IntN(64), int64(0)
		if packed := appendWideVarint(nil, num, 0); string(packed) != string(binary.AppendVarint(nil, num)) {
			t.Fatalf("%d is packed as %x", num, packed)
		}
		if random.IntN(2) == 0 {
			carry = int64(random.Uint64()) >> random.IntN(64)
		}
		packed := appendWideVarint(nil, num, carry)
		r := decoder{packed: packed}
		if gotNum, gotCarry := r.wideVarint(); gotNum != num || gotCarry != carry || r.err != nil || r.more() {
			t.Fatalf("%d and %d·2^64 are packed as %x and read as %d and %d·2^64, error %v", num, carry, packed, gotNum, gotCarry, r.err)
		}
		r = decoder{packed: packed[:len(packed)-1]}
		if r.wideVarint(); r.err == nil {
			t.Fatalf("%x is cut off, but was read without an error", packed)
		}
	}
	for _, packed := range []string{strings.Repeat("\xff", 18) + "\x04", strings.Repeat("\xff", 19) + "\x00", strings.Repeat("\x80", 30)} {
		r := decoder{packed: []byte(packed)}
		if r.wideVarint(); r.err == nil {
			t.Errorf("%x was read without an error", packed)
		}
	}
}

// A compaction drops state that is no longer kept, and the header together with the last of it.
func TestCompactPrunes(t *testing.T) {
	for _, s := range everySeries() {
		var packer Packer
		packer.Begin(s)
		for _, tile := range []int64{100, 104, 109} {
			mutation := randomMutation(rand.New(rand.NewPCG(3, 4)), s)
			mutation.Tile = tile * day / s.Tile
			switch s.Measure {
			case state.Distinct, state.Approx, state.LastTimes, state.Seen:
				mutation.Num, mutation.Member = tile*day, fmt.Append(nil, "m", tile)
			case state.Record:
				mutation.Member = state.AppendLogRecord(nil, state.AppendLogTime(nil, tile*day))
			}
			packer.Add(mutation)
		}
		packed := packer.End(nil)
		for now, want := range map[int64]int{108 * day: 3, 112 * day: 2, 117 * day: 1, 118 * day: 0} {
			compact, err := new(Compactor).Compact(nil, packed, func(uint32) *state.Series { return s }, none, now, Nonce{})
			if err != nil {
				t.Fatal(err)
			}
			if want == 0 {
				if len(compact) != 0 {
					t.Errorf("%s at %d: %q is left, although nothing is kept", s.Measure, now/day, compact)
				}
				continue
			}
			held := New(s)
			if err := Sections(compact, func(_ uint32, body []byte) error { return held.Merge(body) }); err != nil {
				t.Fatal(err)
			}
			windowState := held.Read(&state.Read{Series: s, First: math.MinInt64, Last: math.MaxInt64})
			if windowState.Filter != nil {
				for _, tile := range []int{100, 104, 109} {
					if windowState.Filter.Has(fmt.Append(nil, "m", tile)) {
						windowState.Count++
					}
				}
			}
			n := len(windowState.Buckets) + len(windowState.Members) + int(windowState.Count)
			_ = windowState.Log.Records(func(state.LogRecord) bool { n++; return true })
			if n != want {
				t.Errorf("%s at %d: %d tiles are kept, want %d", s.Measure, now/day, n, want)
			}
		}
	}
}

// The header states the length of the state at its compaction, rounded up if it is long.
func TestHeader(t *testing.T) {
	s := &state.Series{ID: "big", Measure: state.Distinct}
	for _, size := range []int{10, 1 << 16, 1<<19 - 20, 1<<19 + 1, 1<<24 - 20, 1 << 25} {
		var packer Packer
		packer.Begin(s)
		packer.Add(&state.Mutation{Series: s, Text: &state.Text{Member: make([]byte, size)}})
		compact, err := new(Compactor).Compact([]byte("x"), packer.End(nil), func(uint32) *state.Series { return s }, none, 0, Nonce{7, 8, 9, 10})
		if err != nil {
			t.Fatal(err)
		}
		compact = compact[1:]
		if compact[0] != 0 || string(compact[4:8]) != "\x07\x08\x09\x0a" {
			t.Errorf("the header for %d bytes is %v, want a 0 and the nonce", len(compact), compact[:8])
		}
		length := (int(compact[1]&7)<<16 | int(compact[2])<<8 | int(compact[3])) << (compact[1] >> 3)
		if length < len(compact) || length > len(compact)+len(compact)>>(lengthBits-1) {
			t.Errorf("the header for %d bytes states the length %d", len(compact), length)
		}
	}
}

// Any bytes are read or set aside. State that is read packs into bytes that read the same; state that is set aside
// stays damaged.
func FuzzPacked(f *testing.F) {
	list := everySeries()
	random := rand.New(rand.NewPCG(5, 6))
	for _, s := range list {
		var packer Packer
		packer.Begin(s)
		for range 5 {
			packer.Add(randomMutation(random, s))
		}
		f.Add(packer.End(nil))
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		known := func(tag uint32) *state.Series {
			if i := slices.IndexFunc(list, func(s *state.Series) bool { return s.Tag() == tag }); i >= 0 {
				return list[i]
			}
			return nil
		}
		once, wrong := new(Compactor).Compact(nil, packed, known, none, 200*day, Nonce{})
		twice, again := new(Compactor).Compact(nil, once, known, none, 200*day, Nonce{})
		if (wrong == nil) != (again == nil) || string(once) != string(twice) {
			t.Fatalf("compacted once: %q, error %v; twice: %q, error %v", once, wrong, twice, again)
		}
	})
}
