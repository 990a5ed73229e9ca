package packed

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/weir-stream/weir/state"
)

// filter knows the values of one tile by their 64-bit hashes. The first hashes are kept as they are. When they would
// take more than a Bloom filter for the expected number of values, they move into one. When that reaches its share of
// false positives, the next hashes are kept as they are again, until they move into another filter of twice the size
// and half the share: a scalable Bloom filter (P. S. Almeida, C. Baquero, N. Preguiça, D. Hutchison, "Scalable Bloom
// filters", 2007). The shares of any number of layers add up to at most the rate of the series.
//
// A filter that has no room for another layer keeps the next hashes as they are while there is room for them. Then it is
// full: further values are not added, so it is unknown of a value that is not found whether it was met. No more values
// make it find one that was not. See filters for the room.
//
// Packed, it is four times the number of hashes, plus two if it is full, plus one if there are layers; the hashes, 8
// bytes each, ascending; the number of layers, and for each its number of bytes, its number of bits for a value, and its
// bytes.
type filter struct {
	full   bool
	layers []bloom
	few    map[uint64]struct{} // hashes in no layer; there are some only if the last layer has its share
}

// bloom is a Bloom filter that counts its bits.
type bloom struct {
	bits   []byte
	hashes int // bits for each value
	ones   int // bits that are set
}

// hashSize is the size of a hash in bytes.
const hashSize = 8

// layerSize returns the size of a layer of a series (see state.BloomSize). layerRate returns its share of false
// positives.
func layerSize(s *state.Series, layer int) (size, hashes int) {
	const maxDoublings = 20
	return state.BloomSize(s.Max<<min(layer, maxDoublings), layerRate(s, layer))
}

func layerRate(s *state.Series, layer int) float64 { return math.Ldexp(s.Rate, -layer-1) }

func (f *filter) has(hash uint64) bool {
	if _, ok := f.few[hash]; ok {
		return true
	}
	return slices.ContainsFunc(f.layers, func(b bloom) bool { return b.has(hash) })
}

// add adds a value if the filter has room for it within that many bytes.
func (f *filter) add(hash uint64, s *state.Series, most int) {
	if f.full || f.has(hash) {
		return
	}
	n := len(f.layers)
	if n > 0 {
		if last := &f.layers[n-1]; last.rate(last.hashes) <= layerRate(s, n-1) {
			last.add(hash)
			return
		}
	}
	size, hashes := layerSize(s, n)
	room := most - f.size()
	layered := size > 0 && layerOverhead+size-len(f.few)*hashSize <= room // they move into the layer
	if !layered && room < hashSize {
		f.full = true
		return
	}
	f.few[hash] = struct{}{}
	if layered && len(f.few)*hashSize > size {
		f.layers = append(f.layers, newLayer(f.few, size, hashes))
		clear(f.few)
	}
}

func newLayer(values map[uint64]struct{}, size, hashes int) bloom {
	b := bloom{bits: make([]byte, size), hashes: hashes}
	for hash := range values {
		b.add(hash)
	}
	return b
}

// position returns the i-th bit of a value. Mixing the hash with i by SplitMix64 makes the bits independent of each
// other (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", 2014).
func (b *bloom) position(hash uint64, i int) (at int, bit byte) {
	z := hash + uint64(i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	n, _ := bits.Mul64(z, uint64(len(b.bits))*8)
	return int(n / 8), 1 << (n % 8)
}

func (b *bloom) has(hash uint64) bool {
	for i := range b.hashes {
		if at, bit := b.position(hash, i); b.bits[at]&bit == 0 {
			return false
		}
	}
	return true
}

func (b *bloom) add(hash uint64) {
	for i := range b.hashes {
		if at, bit := b.position(hash, i); b.bits[at]&bit == 0 {
			b.bits[at] |= bit
			b.ones++
		}
	}
}

// rate returns the rate of false positives with `more` further bits set; see state.BloomSize.
func (b *bloom) rate(more int) float64 {
	return math.Pow(float64(b.ones+more)/float64(8*len(b.bits)), float64(b.hashes))
}

// The bits of a packed filter's first number.
const (
	hasLayers  = 1 << 0
	isFull     = 1 << 1
	headerBits = 2
)

func (f *filter) pack(dst []byte) []byte {
	header := uint64(len(f.few)) << headerBits
	if len(f.layers) > 0 {
		header |= hasLayers
	}
	if f.full {
		header |= isFull
	}
	dst = binary.AppendUvarint(dst, header)
	for _, hash := range slices.Sorted(maps.Keys(f.few)) {
		dst = binary.BigEndian.AppendUint64(dst, hash)
	}
	if len(f.layers) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(f.layers)))
	for _, b := range f.layers {
		dst = binary.AppendUvarint(dst, uint64(len(b.bits)))
		dst = binary.AppendUvarint(dst, uint64(b.hashes))
		dst = append(dst, b.bits...)
	}
	return dst
}

// merge merges a packed filter. An empty filter takes it as it is, so that packing and merging changes nothing. Its
// layers come before the hashes, because these may go into the last layer.
func (f *filter) merge(r *decoder, s *state.Series, most int) {
	if len(f.few) == 0 && len(f.layers) == 0 {
		most = math.MaxInt
	}
	header := r.uvarint()
	n := header >> headerBits
	if n > uint64(r.rest())/hashSize || header == 0 {
		r.fail()
		return
	}
	packed := r.bytes(n * hashSize)
	if header&hasLayers != 0 {
		f.mergeLayers(r, s, most)
	}
	for ; r.err == nil && len(packed) > 0; packed = packed[hashSize:] {
		f.add(binary.BigEndian.Uint64(packed), s, most)
	}
	f.full = f.full || header&isFull != 0 // only now: what it has was added before
}

// mergeLayers appends packed layers.
func (f *filter) mergeLayers(r *decoder, s *state.Series, most int) {
	n := r.uvarint()
	if n == 0 {
		r.fail()
	}
	for ; n > 0 && r.err == nil; n-- {
		size, hashes := r.uvarint(), r.uvarint()
		packed := r.bytes(size)
		if len(packed) == 0 || hashes == 0 || hashes > 64 {
			r.fail()
			return
		}
		b := bloom{bits: slices.Clone(packed), hashes: int(hashes)}
		for _, eight := range packed {
			b.ones += bits.OnesCount8(eight)
		}
		if !slices.ContainsFunc(f.layers, b.equal) {
			f.layers = append(f.layers, b)
		}
	}
	before := f.few
	f.few = map[uint64]struct{}{}
	for _, hash := range slices.Sorted(maps.Keys(before)) {
		f.add(hash, s, most)
	}
}

// equal reports whether another layer is the same.
func (b *bloom) equal(other bloom) bool {
	return b.hashes == other.hashes && bytes.Equal(b.bits, other.bits)
}

// shorten drops half of the hashes, those of no layer being the last values; without hashes the last layer.
func (f *filter) shorten() {
	f.full = true
	if len(f.few) == 0 {
		f.layers = f.layers[:max(0, len(f.layers)-1)]
		return
	}
	hashes := slices.Sorted(maps.Keys(f.few))
	for _, hash := range hashes[len(hashes)/2:] {
		delete(f.few, hash)
	}
}

const (
	// overhead is what a filter takes at most beside its hashes and layers, and layerOverhead a layer beside its bits, in
	// bytes.
	overhead, layerOverhead = 7, 4
	// leastFilter is how many bytes every filter may have: eight hashes.
	leastFilter = overhead + 8*hashSize
)

// size returns the packed length of the filter, or little more.
func (f *filter) size() int {
	n := overhead + len(f.few)*hashSize
	for _, b := range f.layers {
		n += layerOverhead + len(b.bits)
	}
	return n
}
