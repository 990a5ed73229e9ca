package features

import (
	"cmp"

	"github.com/weir-stream/weir/state"
)

// A group keeps one Redis key of bounded length for each entity. Series that grow with their values or events share the
// bytes of that key. The others take a fixed number of bytes for each tile, as explain says.
const (
	// keyBytes bounds a key right after its compaction, so that it stays below 1 MiB: it also holds up to 2 KiB of
	// children, and grows by up to 460 KiB before it is compacted again (store/redis/candidate.lua). Each of a hundred
	// writers may append 512 bytes before it notices (store/redis/args.go).
	keyBytes = 500 << 10
	// poolBytes bounds the growing series of one group that share a pool (state.Layout.Pool), packed,
	// together.
	poolBytes = 256 << 10
	// leastSeriesBytes is the least share of one series. If these shares add up to more than the
	// pool, the longest series of an entity are shortened further.
	leastSeriesBytes = 4 << 10
)

// pool is a number of bytes that several series share.
type pool struct{ group, name string }

func poolOf(s *state.Series) pool { return pool{s.Group, s.Layout().Pool()} }

// boundSeries sets the byte bounds of the series, given the multiples of the default that they keep, see timesDefault.
func boundSeries(list []*state.Series, multiples map[*state.Series]int) {
	sharing := map[pool]int{}
	for _, s := range list {
		if s.Layout().Grows() {
			sharing[poolOf(s)]++
		}
	}
	together, extra := map[string]int{}, map[string]int{}
	for p := range sharing {
		together[p.group] += poolBytes
	}
	for _, s := range list {
		if s.Layout().Grows() {
			share, times := poolBytes/sharing[poolOf(s)], multiples[s]
			s.Bytes = max(leastSeriesBytes, share) * times
			extra[s.Group] += share * (times - 1)
		}
	}
	for _, s := range list {
		s.KeyBytes = keyBytes + extra[s.Group]
		if s.Layout().Grows() {
			s.GroupBytes = together[s.Group] + extra[s.Group]
		}
	}
}

// timesDefault returns the max of a feature's series as a multiple of the default. A series with a greater max gets a
// greater share of the bytes.
func timesDefault(f *Feature, s *state.Series) int {
	most, usual := cmp.Or(s.Max, s.Values), DefaultLogMax
	if f.Per != "" && !f.Window.Exact {
		usual = DefaultCategories
	}
	return max(1, (most+usual-1)/usual)
}

// DefaultLogMax is how many events the log of an entity keeps, unless a definition
// says otherwise.
const DefaultLogMax = 1000
