// Package packed implements the state of a series for one entity: in memory, where mutations are applied and reads are
// answered, and packed into bytes, as it is stored.
//
// A packed mutation has the encoding of a packed state, so a mutation is written by appending it,
// without reading the state: packing, appending and merging equals applying. The order of mutations
// matters only for logs, for the first and last values of one millisecond, for the last digits of
// moments, and for the false positives of filters.
package packed

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"unsafe"

	"github.com/weir-stream/weir/state"
)

// State is the state of one series for one entity.
type State interface {
	// Apply applies a mutation.
	Apply(mutation *state.Mutation)
	// Merge merges bytes that Append or Packer.Add has packed, which must not change afterwards. It fails on other
	// bytes.
	Merge(packed []byte) error
	// Append packs the state.
	Append(dst []byte) []byte
	// Read answers from the tiles wanted. The answer is valid until the state changes.
	Read(r *state.Read) state.WindowState
	// Prune drops what lies before the first tile kept, as far as that is cheap, and reports whether nothing is left.
	Prune(first int64) (empty bool)
}

// packedEpoch is 2024-01-01. Tiles and times are packed as their distance from it, so that the tile of a day takes two
// bytes.
const packedEpoch = 1704067200000

// firstTile returns the tile from which the first packed tile is counted.
func firstTile(s *state.Series) int64 { return s.TileOf(packedEpoch) }

// appendTiles packs a map of tiles: of each the distance from the tile before, and its content.
func appendTiles[T interface{ pack(dst []byte) []byte }](dst []byte, s *state.Series, tiles map[int64]T) []byte {
	before := firstTile(s)
	for _, tile := range slices.Sorted(maps.Keys(tiles)) {
		dst = binary.AppendVarint(dst, tile-before)
		before = tile
		dst = tiles[tile].pack(dst)
	}
	return dst
}

// pruneTiles drops the tiles before the first one kept, and reports whether nothing is left.
func pruneTiles[T any](tiles map[int64]T, first int64) (empty bool) {
	maps.DeleteFunc(tiles, func(tile int64, _ T) bool { return tile < first })
	return len(tiles) == 0
}

// errPacked is the error for bytes that this package cannot have packed.
var errPacked = errors.New("the state is damaged")

// decoder reads packed numbers and texts. After an error it returns zeros.
type decoder struct {
	packed []byte
	at     int // next byte
	err    error
}

// rest returns the number of bytes left.
func (r *decoder) rest() int { return len(r.packed) - r.at }

func (r *decoder) more() bool { return r.err == nil && r.rest() > 0 }

func (r *decoder) fail() {
	r.at, r.err = len(r.packed), errPacked
}

func (r *decoder) varint() int64 {
	zigzag := r.uvarint()
	return int64(zigzag>>1) ^ -int64(zigzag&1)
}

func (r *decoder) uvarint() uint64 {
	rest := r.packed[r.at:]
	switch { // most numbers have one byte or two
	case len(rest) > 0 && rest[0] < 0x80:
		r.at++
		return uint64(rest[0])
	case len(rest) > 1 && rest[1] < 0x80:
		r.at += 2
		return uint64(rest[0]&0x7f) | uint64(rest[1])<<7
	}
	v, n := binary.Uvarint(rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.at += n
	return v
}

// maxWide is the greatest length of a varint of 128 bits.
const maxWide = 19

// appendWideVarint appends a number of 128 bits, see value.Value; one that fits into 64 bits is
// encoded like any other varint.
func appendWideVarint(dst []byte, num, carry int64) []byte {
	high := carry + num>>63
	sign := uint64(high >> 63)
	zigHigh, zigLow := uint64(high)<<1|uint64(num)>>63^sign, uint64(num)<<1^sign
	for zigHigh > 0 || zigLow >= 0x80 {
		dst = append(dst, byte(zigLow)|0x80)
		zigHigh, zigLow = zigHigh>>7, zigLow>>7|zigHigh<<57
	}
	return append(dst, byte(zigLow))
}

func (r *decoder) wideVarint() (num, carry int64) {
	const narrow = 9 // bytes, which have no more than 63 bits
	if v, n := binary.Uvarint(r.packed[r.at:]); 0 < n && n <= narrow {
		r.at += n
		return int64(v>>1) ^ -int64(v&1), 0
	}
	var high, low uint64
	for n := range min(maxWide, r.rest()) {
		b := r.packed[r.at+n]
		if shift := 7 * n; shift < 64 {
			low |= uint64(b&0x7f) << shift
			high |= uint64(b&0x7f) >> (64 - shift)
		} else {
			high |= uint64(b&0x7f) << (shift - 64)
		}
		if b < 0x80 {
			if n == maxWide-1 && b > 3 {
				break // more than 128 bits
			}
			r.at += n + 1
			sign := -(low & 1)
			num = int64(low>>1|high<<63) ^ int64(sign)
			return num, int64(high>>1^sign) - num>>63
		}
	}
	r.fail()
	return 0, 0
}

func (r *decoder) float() float64 {
	if b := r.bytes(8); r.err == nil {
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

// view returns b as a string, without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytes returns the next n bytes. They alias the bytes that are read.
func (r *decoder) bytes(n uint64) []byte {
	if n > uint64(r.rest()) {
		r.fail()
		return nil
	}
	r.at += int(n)
	return r.packed[r.at-int(n) : r.at]
}
