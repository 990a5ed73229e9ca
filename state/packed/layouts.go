package packed

import "github.com/weir-stream/weir/state"

// packing is a row of the table of encodings: how the state of a layout is made, and how a mutation is packed. The
// layout's row in package state has everything else.
type packing struct {
	// empty makes the empty state of a series; values are hashed with the secret.
	empty func(s *state.Series, secret Secret) State
	// appendMutation packs a mutation. Tiles are written as the distance from the previous one; it
	// returns the tile for the next call.
	appendMutation func(dst []byte, mutation *state.Mutation, before int64, secret Secret) ([]byte, int64)
}

// packings has the row of each layout. The layout's file writes it.
var packings [1 << 8]packing

// New makes the empty state of a series, for merging and packing. NewKeyed is for applying mutations and reading, which
// may hash values.
func New(s *state.Series) State { return NewKeyed(s, Secret{}) }

// NewKeyed makes the empty state of a series with the secret that hashes values.
func NewKeyed(s *state.Series, secret Secret) State { return packings[s.Layout()].empty(s, secret) }

// newTiled makes the empty state of one key of a series' groups.
func newTiled(s *state.Series) tiled {
	return packings[s.Measure.Layout()].empty(s, Secret{}).(tiled)
}

func appendMutation(dst []byte, mutation *state.Mutation, before int64, secret Secret) ([]byte, int64) {
	return packings[mutation.Series.Layout()].appendMutation(dst, mutation, before, secret)
}

// appendTiledMutation packs a mutation of one key of groups.
func appendTiledMutation(dst []byte, mutation *state.Mutation, before int64) []byte {
	dst, _ = packings[mutation.Series.Measure.Layout()].appendMutation(dst, mutation, before, Secret{})
	return dst
}
