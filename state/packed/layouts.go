package packed

import "github.com/weir-stream/weir/state"

// packing is a row of the table of encodings: how the state of a layout is made, and how a mutation is packed. The
// layout's row in package state has everything else.
type packing struct {
	// empty makes the empty state of a series; values are hashed with the secret.
	empty func(s *state.Series, secret state.Secret) State
	// appendMutation packs a mutation. Tiles are written as the distance from the previous one; it
	// returns the tile for the next call.
	appendMutation func(dst []byte, mutation *state.Mutation, before int64, secret state.Secret) ([]byte, int64)
}

// packings has the row of each layout. The layout's file writes it.
var packings [1 << 8]packing

// New makes the empty state of a series without a secret. It shows whether packed state can be read, but it may keep
// other values of it than NewKeyed.
func New(s *state.Series) State { return NewKeyed(s, state.Secret{}) }

// NewKeyed makes the empty state of a series with the secret that hashes values.
func NewKeyed(s *state.Series, secret state.Secret) State {
	return packings[s.Layout()].empty(s, secret)
}

// newTiled makes the empty state of one key of a series' groups.
func newTiled(s *state.Series, secret state.Secret) tiled {
	return packings[s.Measure.Layout()].empty(s, secret).(tiled)
}

func appendMutation(dst []byte, mutation *state.Mutation, before int64, secret state.Secret) ([]byte, int64) {
	return packings[mutation.Series.Layout()].appendMutation(dst, mutation, before, secret)
}

// appendTiledMutation packs a mutation of one key of groups.
func appendTiledMutation(dst []byte, mutation *state.Mutation, before int64, secret state.Secret) []byte {
	dst, _ = packings[mutation.Series.Measure.Layout()].appendMutation(dst, mutation, before, secret)
	return dst
}
