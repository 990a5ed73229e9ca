package packed

import (
	"cmp"
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Entry is one item of a state in readable form: a tile with its number, a value with its tiles or its last time, a
// tile's HyperLogLog, filters or moments, the hash of an event's ID, or an event of a log.
type Entry struct {
	// Tiles are the tiles of a value; a tile of LastSeen is a millisecond. It is nil if there are none.
	Tiles  []int64
	Key    *string // the key of Groups; nil if there is none
	Member *string
	Value  value.Value // of a tile; null for none
	// Estimate is the estimated number of values of a HyperLogLog, Registers the number of its
	// non-zero registers.
	Estimate  int64
	Registers int
	// Hashes is the number of values that a tile's filters keep as hashes, Bits the number of bits
	// set in its Bloom filters.
	Hashes, Bits int
	Moments      state.Moments // of a tile
	Record       *state.LogRecord
}

// lister is a State whose Read does not show everything that it holds.
type lister interface{ entries() []Entry }

// Entries lists the items of a series' state, ordered by tile or value, and the time up to which events were dropped
// from its log. It fails if a log is damaged.
func Entries(s *state.Series, st State) (list []Entry, cutOff *int64, err error) {
	if l, ok := st.(lister); ok {
		return l.entries(), nil, nil
	}
	all := st.Read(&state.Read{Series: s, First: math.MinInt64, Last: math.MaxInt64})
	for _, b := range all.Buckets {
		list = append(list, Entry{Tiles: []int64{b.Tile}, Value: b.Value})
	}
	err = all.Log.Records(func(r state.LogRecord) bool {
		list = append(list, Entry{Record: &r})
		return true
	})
	if time, ok := all.Log.CutOff(); ok {
		cutOff = &time
	}
	return list, cutOff, err
}

// Part is the packed state of one series.
type Part struct {
	Tag      uint32
	Sections int
	Bytes    int           // of the sections, with their tags and lengths
	Series   *state.Series // nil if unknown
	State    State         // nil if the series is unknown
}

// Unpack splits packed state, whose values were hashed with a secret, by series, in stored order. If the state is
// damaged, it lists what can be read and returns an error.
func Unpack(packed []byte, secret state.Secret, known func(tag uint32) *state.Series) ([]Part, error) {
	var parts []Part
	var found damage
	err := Sections(packed, func(tag uint32, body []byte) error {
		if found.take(tag, body) {
			return nil
		}
		i := slices.IndexFunc(parts, func(p Part) bool { return p.Tag == tag })
		if i < 0 {
			i = len(parts)
			parts = append(parts, Part{Tag: tag, Series: known(tag)})
			if parts[i].Series != nil {
				parts[i].State = NewKeyed(parts[i].Series, secret)
			}
		}
		p := &parts[i]
		p.Sections++
		p.Bytes += len(appendSection(nil, tag, body))
		if p.State == nil {
			return nil
		}
		return p.State.Merge(body)
	})
	return parts, cmp.Or(err, found.err(anyTag))
}
