package packed

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// hyperLogLog estimates the number of distinct values, with the registers and the estimator of Redis (Ertl, "New
// cardinality estimation algorithms for HyperLogLog sketches", 2017) and hashes keyed with the namespace's secret.
//
// A sketch that takes too much is made coarser, with half as many registers. It is then equal to one that had them from
// the start.
type hyperLogLog struct {
	few     []uint32 // the non-zero registers, packed and ascending, while they are few
	dense   []uint8  // all registers; nil while they are few
	coarser uint8    // by how many bits fewer than hllBits a register is chosen
}

const (
	hllBits      = 14 // bits of the hash that choose the register
	hllLeastBits = 7
	hllRegisters = 1 << hllBits
	hllRanks     = 64 - hllBits
	hllFew       = 500 // inserting into more is slow
	// hllAlpha is 1 / (2 ln 2).
	hllAlpha = 0.721347520444481703680
)

// add adds a value, given its hash.
func (h *hyperLogLog) add(hash uint64) {
	register, rank := registerOf(hash)
	h.set(register, rank, 0)
}

// registers returns the number of registers.
func (h *hyperLogLog) registers() int { return hllRegisters >> h.coarser }

// standardError returns the relative standard error of the estimate.
func (h *hyperLogLog) standardError() float64 { return 1.04 / math.Sqrt(float64(h.registers())) }

// registerOf returns the register of a value with a hash, and the rank to which the value raises it.
func registerOf(hash uint64) (register uint16, rank uint8) {
	return uint16(hash % hllRegisters), uint8(bits.TrailingZeros64(hash>>hllBits|1<<hllRanks) + 1)
}

// coarsened converts a register and its rank from one coarseness to another. The first bit that no
// longer chooses the register is the first that the rank counts.
func coarsened(register uint16, rank, from, to uint8) (uint16, uint8) {
	for ; from < to; from++ {
		top := uint16(hllRegisters >> (from + 1))
		if register&top != 0 {
			register, rank = register&^top, 1
		} else {
			rank++
		}
	}
	return register, rank
}

// coarsen makes it coarser by some bits than hllBits, unless it already is.
func (h *hyperLogLog) coarsen(coarser uint8) {
	if coarser <= h.coarser {
		return
	}
	before := *h
	*h = hyperLogLog{coarser: coarser}
	h.merge(&before)
}

// set raises a register of a sketch that is coarser by some bits, at most as coarse as h, to a
// rank.
func (h *hyperLogLog) set(register uint16, rank, coarser uint8) {
	register, rank = coarsened(register, rank, coarser, h.coarser)
	if h.dense != nil {
		h.dense[register] = max(h.dense[register], rank)
		return
	}
	i, known := slices.BinarySearchFunc(h.few, uint32(register), func(held, register uint32) int {
		return cmp.Compare(held>>rankBits, register)
	})
	if known {
		h.few[i] = max(h.few[i], packedRegister(register, rank))
		return
	}
	h.few = slices.Insert(h.few, i, packedRegister(register, rank))
	if len(h.few) > hllFew>>h.coarser {
		h.dense = make([]uint8, h.registers())
		for _, held := range h.few {
			h.dense[held>>rankBits] = uint8(held & maxRank)
		}
		h.few = nil
	}
}

// empty removes all values and keeps the memory.
func (h *hyperLogLog) empty() { h.few, h.dense, h.coarser = h.few[:0], nil, 0 }

func (h *hyperLogLog) merge(other *hyperLogLog) {
	h.coarsen(other.coarser)
	for _, held := range other.few {
		h.set(uint16(held>>rankBits), uint8(held&maxRank), other.coarser)
	}
	for register, rank := range other.dense {
		if rank > 0 {
			h.set(uint16(register), rank, other.coarser)
		}
	}
}

// A packed sketch is the number of its non-zero registers and, by ascending register, the distances of register times
// 64 plus rank: two bytes each while they are few. If that would take more than six bits for each of all registers, the
// number is 0 and all registers follow, four ranks in three bytes. A coarser sketch has a prefix: a number of registers
// that cannot occur, and its coarseness in bits.

// packedSize returns the length of all registers, packed.
func (h *hyperLogLog) packedSize() int { return h.registers() * 6 / 8 }

const (
	rankBits = 6
	maxRank  = 1<<rankBits - 1
)

func packedRegister(register uint16, rank uint8) uint32 {
	return uint32(register)<<rankBits | uint32(rank)
}

func (h *hyperLogLog) pack(dst []byte) []byte {
	registers := h.few
	for register, rank := range h.dense {
		if rank > 0 {
			registers = append(registers, packedRegister(uint16(register), rank))
		}
	}
	if h.coarser > 0 {
		dst = binary.AppendUvarint(dst, hllRegisters+uint64(h.coarser))
	}
	if 2*len(registers) > h.packedSize() {
		dst = append(dst, 0)
		for r := h.dense; len(r) > 0; r = r[4:] {
			four := uint32(r[0])<<18 | uint32(r[1])<<12 | uint32(r[2])<<6 | uint32(r[3])
			dst = append(dst, byte(four>>16), byte(four>>8), byte(four))
		}
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(registers)))
	before := uint32(0)
	for _, r := range registers {
		dst = binary.AppendUvarint(dst, uint64(r-before))
		before = r
	}
	return dst
}

// unpack merges a packed sketch.
func (h *hyperLogLog) unpack(r *decoder) {
	n, coarser := r.uvarint(), uint8(0)
	if n > hllRegisters && n <= hllRegisters+hllBits-hllLeastBits {
		coarser = uint8(n - hllRegisters)
		h.coarsen(coarser)
		n = r.uvarint()
	}
	if n == 0 {
		packed := r.bytes(uint64((&hyperLogLog{coarser: coarser}).packedSize()))
		for i := 0; i < len(packed); i += 3 {
			four := uint32(packed[i])<<16 | uint32(packed[i+1])<<8 | uint32(packed[i+2])
			for j := range 4 {
				if rank := uint8(four >> (18 - 6*j) & maxRank); rank > 0 {
					h.raise(r, uint64(i/3*4+j), rank, coarser)
				}
			}
		}
		return
	}
	for at := uint64(0); n > 0 && r.err == nil; n-- {
		at += r.uvarint()
		h.raise(r, at>>rankBits, uint8(at&maxRank), coarser)
	}
}

// raise sets a register that was read from a sketch that is coarser by some bits, if the register exists.
func (h *hyperLogLog) raise(r *decoder, register uint64, rank, coarser uint8) {
	if register >= hllRegisters>>coarser || rank == 0 || rank > hllRanks+1+coarser {
		r.fail()
		return
	}
	h.set(uint16(register), rank, coarser)
}

func (h *hyperLogLog) count() int64 {
	var ranks [maxRank + 1]int
	most := hllRanks + int(h.coarser)
	for _, held := range h.few {
		ranks[held&maxRank]++
	}
	for _, rank := range h.dense {
		ranks[rank]++
	}
	if h.dense == nil {
		ranks[0] = h.registers() - len(h.few)
	}
	m := float64(h.registers())
	z := m * tau((m-float64(ranks[most+1]))/m)
	for rank := most; rank >= 1; rank-- {
		z = (z + float64(ranks[rank])) * 0.5
	}
	z += m * sigma(float64(ranks[0])/m)
	return int64(math.Round(hllAlpha * m * m / z))
}

// sigma and tau correct for the registers of least and of greatest rank.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	for y, z := 1.0, x; ; y += y {
		x *= x
		before := z
		z += x * y
		if z == before {
			return z
		}
	}
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	for y, z := 1.0, 1-x; ; {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		z -= (1 - x) * (1 - x) * y
		if z == before {
			return z / 3
		}
	}
}

// raised is the number of non-zero registers.
func (h *hyperLogLog) raised() int {
	n := len(h.few)
	for _, rank := range h.dense {
		if rank > 0 {
			n++
		}
	}
	return n
}
