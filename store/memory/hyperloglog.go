package memory

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// hyperLogLog estimates the number of different values, bit for bit as Redis
// does, so that what a model learns from is what it is asked with: the same
// hash, registers and estimator (Ertl, "New cardinality estimation algorithms
// for HyperLogLog sketches", 2017).
type hyperLogLog struct {
	few   map[uint16]uint8 // the registers that are not 0, while they are few
	dense []uint8          // all registers; nil while they are few
}

const (
	hllBits      = 14 // of the hash choose the register
	hllRegisters = 1 << hllBits
	hllRanks     = 64 - hllBits
	hllSeed      = 0xadc83b19
	hllFew       = 500 // a map of more takes the memory of all registers
	// hllAlpha is 1 / (2 ln 2).
	hllAlpha = 0.721347520444481703680
)

func (h *hyperLogLog) add(value []byte) {
	hash := murmur64(value, hllSeed)
	h.set(uint16(hash%hllRegisters), uint8(bits.TrailingZeros64(hash>>hllBits|1<<hllRanks)+1))
}

// set raises a register to a rank.
func (h *hyperLogLog) set(register uint16, rank uint8) {
	if h.dense != nil {
		h.dense[register] = max(h.dense[register], rank)
		return
	}
	if h.few == nil {
		h.few = map[uint16]uint8{}
	}
	h.few[register] = max(h.few[register], rank)
	if len(h.few) > hllFew {
		h.dense = make([]uint8, hllRegisters)
		for register, rank := range h.few {
			h.dense[register] = rank
		}
		h.few = nil
	}
}

func (h *hyperLogLog) merge(other *hyperLogLog) {
	for register, rank := range other.few {
		h.set(register, rank)
	}
	for register, rank := range other.dense {
		if rank > 0 {
			h.set(uint16(register), rank)
		}
	}
}

func (h *hyperLogLog) count() int64 {
	var ranks [hllRanks + 2]int
	for _, rank := range h.few {
		ranks[rank]++
	}
	for _, rank := range h.dense {
		ranks[rank]++
	}
	if h.dense == nil {
		ranks[0] = hllRegisters - len(h.few)
	}
	const m = float64(hllRegisters)
	z := m * tau((m-float64(ranks[hllRanks+1]))/m)
	for rank := hllRanks; rank >= 1; rank-- {
		z = (z + float64(ranks[rank])) * 0.5
	}
	z += m * sigma(float64(ranks[0])/m)
	return int64(math.Round(hllAlpha * m * m / z))
}

// sigma and tau correct for the registers of least and greatest rank.
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

// murmur64 is MurmurHash64A.
func murmur64(data []byte, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(data))*m
	for ; len(data) >= 8; data = data[8:] {
		k := binary.LittleEndian.Uint64(data) * m
		k ^= k >> r
		h = (h ^ k*m) * m
	}
	if len(data) > 0 {
		var tail [8]byte
		copy(tail[:], data)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * m
	}
	h ^= h >> r
	h *= m
	return h ^ h>>r
}
