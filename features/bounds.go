package features

import "github.com/weir-stream/weir/state"

// What a group keeps of an entity is one key of Redis, whatever happens to the
// entity. Series that grow with the values or events they meet share the bytes that
// the key may take; the others take a number for each tile, as explain says.
const (
	// poolBytes is what logs of one group may take together, packed, and what the
	// others may: so the key stays below 1 MiB, with what is appended until it is
	// compacted. A log stands apart, for many features have their columns in it.
	poolBytes = 256 << 10
	// leastSeriesBytes is the least share of one. Where there are so many that these
	// are more than the pool has, the longest of an entity are made shorter still.
	leastSeriesBytes = 4 << 10
)

// pool is what shares bytes.
type pool struct {
	group string
	logs  bool
}

func poolOf(s *state.Series) pool { return pool{s.Group, s.Layout() == state.Logs} }

// boundSeries gives the series their bytes.
func boundSeries(list []*state.Series) {
	sharing := map[pool]int{}
	for _, s := range list {
		if s.Layout().Grows() {
			sharing[poolOf(s)]++
		}
	}
	together := map[string]int{}
	for p := range sharing {
		together[p.group] += poolBytes
	}
	for _, s := range list {
		if s.Layout().Grows() {
			share, times := poolBytes/sharing[poolOf(s)], timesDefault(s)
			s.Bytes = max(leastSeriesBytes, share) * times
			together[s.Group] += share * (times - 1)
		}
	}
	for _, s := range list {
		if s.Layout().Grows() {
			s.GroupBytes = together[s.Group]
		}
	}
}

// timesDefault is how many times the default of its max a series was given: who wants
// more kept takes the bytes for it.
func timesDefault(s *state.Series) int {
	most, usual := s.Max, DefaultLogMax
	switch {
	case s.Layout() == state.Members:
		most = s.Values
	case s.Layout() == state.Groups && s.Keys == "" && s.Per != s.Field:
		usual = DefaultCategories
	}
	return max(1, (most+usual-1)/usual)
}

// DefaultLogMax is how many events the log of an entity keeps, unless a definition
// says otherwise.
const DefaultLogMax = 1000
