package packed

import (
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
// Packed, it is twice the number of hashes, plus one if there are layers; the hashes, 8 bytes each,
// ascending; the number of layers, and for each its number of bytes, its number of bits for a
// value, and its bytes.
type filter struct {
	layers []bloom
	few    map[uint64]struct{} // hashes in no layer; there are some only if the last layer is full
	most   int                 // number of hashes in few that move into a layer; 0 if unknown
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

// mayGrow reports whether the filters of all tiles of a series may have one more layer. If not, the last one is filled
// further, and its rate rises.
func mayGrow(s *state.Series, layers int) bool {
	if s.Bytes == 0 {
		return true
	}
	total := 0
	for i := range layers + 1 {
		size, _ := layerSize(s, i)
		total += size
	}
	return total*max(1, s.Tiles) <= s.Bytes
}

func layerRate(s *state.Series, layer int) float64 { return math.Ldexp(s.Rate, -layer-1) }

func (f *filter) has(hash uint64) bool {
	if _, ok := f.few[hash]; ok {
		return true
	}
	return slices.ContainsFunc(f.layers, func(b bloom) bool { return b.has(hash) })
}

func (f *filter) add(hash uint64, s *state.Series) {
	if f.has(hash) {
		return
	}
	n := len(f.layers)
	if n > 0 {
		if last := &f.layers[n-1]; last.rate(last.hashes) <= layerRate(s, n-1) || !mayGrow(s, n) {
			last.add(hash)
			return
		}
	}
	f.few[hash] = struct{}{}
	if f.most == 0 {
		f.most = math.MaxInt
		if size, _ := layerSize(s, n); size > 0 {
			f.most = size / hashSize
		}
	}
	if len(f.few) > f.most {
		size, hashes := layerSize(s, n)
		layer := bloom{bits: make([]byte, size), hashes: hashes}
		for h := range f.few {
			layer.add(h)
		}
		f.layers, f.most = append(f.layers, layer), 0
		clear(f.few)
	}
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

func (f *filter) pack(dst []byte) []byte {
	header := uint64(len(f.few)) << 1
	if len(f.layers) > 0 {
		header |= 1
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

// merge merges a packed filter. Its layers come before the hashes, because these may go into the
// last layer.
func (f *filter) merge(r *decoder, s *state.Series) {
	header := r.uvarint()
	n := header >> 1
	if n > uint64(r.rest())/hashSize || header == 0 {
		r.fail()
		return
	}
	packed := r.bytes(n * hashSize)
	if header&1 == 1 {
		f.mergeLayers(r, s)
	}
	for ; r.err == nil && len(packed) > 0; packed = packed[hashSize:] {
		f.add(binary.BigEndian.Uint64(packed), s)
	}
}

// mergeLayers appends packed layers.
func (f *filter) mergeLayers(r *decoder, s *state.Series) {
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
		f.layers = append(f.layers, b)
	}
	before := f.few
	f.few, f.most = map[uint64]struct{}{}, 0
	for _, hash := range slices.Sorted(maps.Keys(before)) {
		f.add(hash, s)
	}
}

const (
	// leastFilter is the length of a filter, in bytes, below which it is not shortened.
	leastFilter = 64
	// squeezedBits is the number of bits of a filter for each value that was kept as a hash,
	// squeezedHashes how many of them the value sets.
	squeezedBits, squeezedHashes = 32, 5
)

// squeeze halves the longest filters, and reports whether there are any. Values that were added are still found; the
// rate of false positives rises, and is stated.
func (f *filters) squeeze() bool {
	longest := 0
	for _, held := range f.tiles {
		longest = max(longest, held.size())
	}
	if longest <= leastFilter {
		return false
	}
	for _, held := range f.tiles {
		if held.size() > longest/2 {
			held.halve()
		}
	}
	return true
}

// size returns the approximate packed length of the filter.
func (f *filter) size() int {
	n := len(f.few) * hashSize
	for _, b := range f.layers {
		n += len(b.bits)
	}
	return n
}

// halve moves the hashes into a layer of their own, and halves the other layers.
func (f *filter) halve() {
	for i := range f.layers {
		if len(f.layers[i].bits) > 1 {
			f.layers[i].halve()
		}
	}
	if len(f.few) == 0 {
		return
	}
	b := bloom{bits: make([]byte, (len(f.few)*squeezedBits+7)/8), hashes: squeezedHashes}
	for hash := range f.few {
		b.add(hash)
	}
	f.layers = append(f.layers, b)
	clear(f.few)
	f.most = 0
}

// halve halves its length. The position of a bit is a fraction of the length. This fraction stays the same, up to one
// of two neighbouring bits.
func (b *bloom) halve() {
	half := bloom{bits: make([]byte, (len(b.bits)+1)/2), hashes: b.hashes}
	was, is := 8*len(b.bits), 8*len(half.bits)
	for n := range was {
		if b.bits[n/8]&(1<<(n%8)) == 0 {
			continue
		}
		for at := n * is / was; at <= ((n+1)*is-1)/was; at++ {
			half.bits[at/8] |= 1 << (at % 8)
		}
	}
	for _, eight := range half.bits {
		half.ones += bits.OnesCount8(eight)
	}
	*b = half
}
