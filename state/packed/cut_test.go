package packed

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// A key stays within its bound. If the oldest tiles were dropped, a loss says so, and everything after it is unchanged.
func TestKeysAreCut(t *testing.T) {
	const tiles, now = 5000, 19700 * day
	none := func(uint32) bool { return false }
	for measure := state.CountEvents; measure <= state.GreatestText; measure++ {
		for _, per := range []string{"", "key"} {
			s := &state.Series{
				ID: "s", Measure: measure, Per: per, Type: value.String, Tile: 1000, Keep: tiles * 1000,
				Max: 1000, Values: 1000, Rate: 0.001, Tiles: tiles + 1, GroupKeep: day, KeyBytes: 20_000,
			}
			if measure == state.RememberID || per != "" && !mayBeKeyed(measure) {
				continue
			}
			if s.Layout().Exact() {
				s.Tile, s.Keep, s.Tiles = 1, tiles, tiles+1
			}
			if s.Layout().Grows() {
				s.Bytes, s.GroupBytes = 4<<10, 4<<10
			}
			known := func(uint32) *state.Series { return s }
			var packer Packer
			packer.Begin(s)
			for n := range int64(tiles) {
				packer.Add(longestOf(s, s.TileOf(now)-n))
			}
			whole := packer.End(nil)
			packed, err := new(Compactor).Compact(nil, whole, known, none, now, Nonce{1})
			if err != nil {
				t.Fatal(err)
			}
			// A fill, or a worker that has just begun, does not know the moment.
			if unknown, err := new(Compactor).Compact(nil, whole, known, none, 0, Nonce{1}); err != nil || len(unknown) > s.KeyBytes {
				t.Errorf("measure %v by %q: packed %d bytes at an unknown moment, want at most %d; error %v", measure, per, len(unknown), s.KeyBytes, err)
			}
			if len(packed) > s.KeyBytes || len(packed) < s.KeyBytes/20 && s.Layout() != state.Logs && s.Layout() != state.Filters {
				t.Errorf("measure %v by %q: packed %d bytes, want at most %d and at least a twentieth of that", measure, per, len(packed), s.KeyBytes)
			}
			checkLoss(t, s, whole, packed)
			again, err := new(Compactor).Compact(nil, packed, known, none, now, Nonce{1})
			if err != nil || string(again) != string(packed) {
				t.Errorf("measure %v by %q: a second compaction changes the key: error %v", measure, per, err)
			}
			const later = now + 2*day
			if empty, err := new(Compactor).Compact(nil, packed, known, none, later, Nonce{1}); err != nil || len(empty) > 0 {
				t.Errorf("measure %v by %q: %d bytes are left when nothing is kept any more: error %v", measure, per, len(empty), err)
			}
		}
	}
}

// Event IDs are not cut off, not even from a long key: a repeated event would count twice.
func TestEventIDsAreNotCutOff(t *testing.T) {
	s := &state.Series{ID: "ids", Measure: state.RememberID, Tile: 1000, Keep: day, Max: 1000, KeyBytes: 100}
	var packer Packer
	packer.Begin(s)
	for n := range int64(1000) {
		packer.Add(&state.Mutation{Series: s, Tile: 19700*day/1000 - n, Text: &state.Text{Member: fmt.Append(nil, n)}})
	}
	packed, err := new(Compactor).Compact(nil, packer.End(nil), func(uint32) *state.Series { return s }, func(uint32) bool { return false }, 19700*day, Nonce{1})
	if err != nil {
		t.Fatal(err)
	}
	err = Sections(packed, func(tag uint32, body []byte) error {
		held := New(s)
		if err := held.Merge(body); err != nil || tag != s.Tag() {
			return fmt.Errorf("tag %06x: %w", tag, err)
		}
		if got := len(held.(*dedupSet).list); got != 1000 {
			t.Errorf("%d event IDs are left, want all", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// checkLoss compares a series that may have lost state with the whole one.
func checkLoss(t *testing.T, s *state.Series, whole, packed []byte) {
	t.Helper()
	was, is := New(s), New(s)
	var losses Losses
	err := Sections(whole, func(_ uint32, body []byte) error { return was.Merge(body) })
	err = cmp.Or(err, Sections(packed, func(tag uint32, body []byte) error {
		if isLoss, err := losses.Take(tag, body); isLoss {
			return err
		}
		return is.Merge(body)
	}))
	if err != nil {
		t.Fatal(err)
	}
	switch until := losses.Of(s.Tag()); {
	case until == nil:
		if !s.Layout().Grows() {
			t.Errorf("measure %v by %q is not reported as lost", s.Measure, s.Per)
		}
	case !s.Layout().Grows():
		r := &state.Read{Series: s, First: s.TileOf(*until + 1), Last: math.MaxInt64}
		if got, want := is.Read(r), was.Read(r); !reflect.DeepEqual(got, want) || want.Empty() {
			t.Errorf("measure %v by %q: after the loss the state is %v, want %v", s.Measure, s.Per, got, want)
		}
	}
}

// mayBeKeyed reports whether a measure can be kept by keys.
func mayBeKeyed(m state.Measure) bool {
	switch m.Layout() {
	case state.Tiles, state.Members, state.Sketches, state.MomentTiles, state.Extremes:
		return true
	default:
		return false
	}
}

// longestOf is the longest possible mutation of a tile of a series.
func longestOf(s *state.Series, tile int64) *state.Mutation {
	text := fmt.Appendf(nil, "%0*d", value.MaxText, tile)
	mutation := &state.Mutation{Series: s, Tile: tile, Num: math.MaxInt64 - tile, Text: &state.Text{Key: text, Member: text}}
	switch layout := s.Measure.Layout(); {
	case layout == state.MomentTiles:
		mutation.Num = int64(math.Float64bits(math.Pi * float64(tile)))
	case layout == state.LastSeen:
		mutation.Num = tile
	case layout == state.Logs:
		mutation.Member = state.AppendLogRecord(nil, append(state.AppendLogTime(nil, tile), text...))
	case layout == state.Extremes:
		if mutation.Num = tile * s.Tile; s.Measure.Member() == state.ValueMember {
			mutation.Member = state.AppendValue(nil, value.Value{Type: value.String, Str: text})
		}
	case s.Measure.Counts():
		mutation.Num = 1 << 30
	}
	return mutation
}

// A key keeps each loss once, and drops it together with the state that it concerns.
func TestLossesAreKeptOnce(t *testing.T) {
	s := &state.Series{ID: "s", Measure: state.CountEvents, Tile: day, Keep: 30 * day, GroupKeep: 31 * day}
	const now, other, garbage = 19700 * day, 0xaaaaaa, 0xbbbbbb
	compact := func(packed []byte, now int64) []byte {
		t.Helper()
		packed, err := new(Compactor).Compact(nil, packed, func(tag uint32) *state.Series {
			if tag == s.Tag() {
				return s
			}
			return nil
		}, func(tag uint32) bool { return tag == garbage }, now, Nonce{1})
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	lossesOf := func(packed []byte) (l Losses) {
		t.Helper()
		if err := Sections(packed, func(tag uint32, body []byte) error { _, err := l.Take(tag, body); return err }); err != nil {
			t.Fatal(err)
		}
		return l
	}
	var packer Packer
	packer.Begin(s)
	packer.Add(&state.Mutation{Series: s, Tile: s.TileOf(now), Num: 1})
	packed := packer.End(nil)
	child := uint32(0xff0001)
	waits := Loss{Until: now - 30, Mark: NewMark(), Tags: []uint32{s.Tag()}}
	for _, l := range []Loss{
		{Until: now - 9, Tags: []uint32{s.Tag(), other}}, {Until: now - 8}, {Until: now - 7, Tags: []uint32{s.Tag()}}, {Until: now - 20},
		{Until: now, Tags: []uint32{garbage}}, waits, {Until: now - 6, Tags: []uint32{other, child, s.Tag()}},
	} {
		packed = AppendLoss(packed, l)
	}
	packed = compact(packed, now)
	want := Losses{waits, {Until: now - 6, Tags: []uint32{other, child, s.Tag()}}, {Until: now - 8}, {Until: now - 7, Tags: []uint32{s.Tag()}}}
	if got := lossesOf(packed); !reflect.DeepEqual(got, want) {
		t.Errorf("the losses are %v, want %v", got, want)
	}
	packer.Begin(s)
	packer.Add(&state.Mutation{Series: s, Tile: s.TileOf(now) + 31, Num: 1})
	if got := lossesOf(compact(packer.End(packed), now+s.GroupKeep)); got != nil {
		t.Errorf("the losses are %v although the lost state is no longer kept", got)
	}
}
