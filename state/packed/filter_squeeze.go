package packed

import "math/bits"

const (
	// leastFilter is the length of a filter, in bytes, that is not made shorter.
	leastFilter = 64
	// squeezedBits are those that a filter has for each value that was kept as a hash,
	// and squeezedHashes those that the value sets.
	squeezedBits, squeezedHashes = 32, 5
)

// squeeze halves the longest filters, and says whether there are such. Values that
// were met are still found; the rate of false positives rises, and is stated.
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

// size is about the length of the filter when it is packed.
func (f *filter) size() int {
	n := len(f.few) * hashSize
	for _, b := range f.layers {
		n += len(b.bits)
	}
	return n
}

// halve puts the values kept as hashes into a layer of their own, and halves the
// others.
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

// halve makes it half as long. A bit's position is the share of all bits that lie
// before it: in fewer bits it is that share too, or either of two beside each other.
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
