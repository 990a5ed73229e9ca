package packed

import "github.com/weir-stream/weir/state"

// packing is a row of the table of the layouts: how a state of one is made, and how
// an operation on it is packed. What else there is to say of a layout says its row in
// package state.
type packing struct {
	// empty is the empty state of a series; values are hashed with the secret.
	empty func(s *state.Series, secret Secret) State
	// appendOp packs an operation. Tiles are written as the distance from the one
	// before, which it returns for the next.
	appendOp func(dst []byte, op *state.Mutation, before int64, secret Secret) ([]byte, int64)
}

var packings = [...]packing{
	state.Tiles:       packedTiles,
	state.Members:     packedMembers,
	state.Sketches:    packedSketches,
	state.LastSeen:    packedLastSeen,
	state.Logs:        packedLogs,
	state.Filters:     packedFilters,
	state.DedupSet:    packedDedupSet,
	state.MomentTiles: packedMoments,
	state.Extremes:    packedExtremes,
	state.Groups:      {}, // see init
}

func init() { packings[state.Groups] = packedGroups } // which looks into the table itself

// New is the empty state of a series that takes in, and gives out, what is packed. One
// that hashes values is made by NewKeyed where it takes in operations or is asked.
func New(s *state.Series) State { return NewKeyed(s, Secret{}) }

// NewKeyed is the empty state of a series that takes in operations and is asked about
// values with a secret.
func NewKeyed(s *state.Series, secret Secret) State { return packings[s.Layout()].empty(s, secret) }

// newTiled is the empty state of a key of a series' groups.
func newTiled(s *state.Series) tiled {
	return packings[s.Measure.Layout()].empty(s, Secret{}).(tiled)
}

func appendOp(dst []byte, op *state.Mutation, before int64, secret Secret) ([]byte, int64) {
	return packings[op.Series.Layout()].appendOp(dst, op, before, secret)
}

// appendTiledOp packs an operation on a key of groups.
func appendTiledOp(dst []byte, op *state.Mutation, before int64) []byte {
	dst, _ = packings[op.Series.Measure.Layout()].appendOp(dst, op, before, Secret{})
	return dst
}
