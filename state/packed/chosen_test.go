package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-stream/weir/state"
)

// murmur64 is MurmurHash64A, the hash of HyperLogLogs in Redis.
func murmur64(data []byte) uint64 {
	const m, r, seed = 0xc6a4a7935bd1e995, 47, 0xadc83b19
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

// chosen returns n values whose hashes are like those of which an attacker expects a false number.
func chosen(n int, hash func([]byte) uint64, like func(uint64) bool) (values [][]byte) {
	for i := 0; len(values) < n; i++ {
		if value := fmt.Append(nil, "device-", i); like(hash(value)) {
			values = append(values, value)
		}
	}
	return values
}

// Whoever chooses values by the hashes that anybody can compute does not change what is answered about their number.
func TestChosenValuesCountAsAnyOthers(t *testing.T) {
	const n, most = 2000, 200
	hashes := map[string]func([]byte) uint64{"murmur": murmur64, "xxhash": xxhash.Sum64, "siphash without a secret": state.Secret{}.Hash}
	alike := map[string]func(uint64) bool{
		"few registers":   func(hash uint64) bool { return hash%hllRegisters < hllRegisters/1024 },
		"high ranks":      func(hash uint64) bool { return hash>>hllBits%1024 == 0 },
		"least hashes":    func(hash uint64) bool { return hash < math.MaxUint64/1024 },
		"greatest hashes": func(hash uint64) bool { return hash > math.MaxUint64-math.MaxUint64/1024 },
	}
	per := &state.Series{ID: "group", Measure: state.Distinct, Tile: 1, Values: most, Max: 10, Per: "city"}
	for name, hash := range hashes {
		for kind, like := range alike {
			values := chosen(n, hash, like)
			for _, s := range []*state.Series{
				{ID: "sketc", Measure: state.Approx, Tile: 1}, {ID: "membe", Measure: state.Distinct, Tile: 1, Values: most}, per,
			} {
				secret := state.NewSecret()
				held := NewKeyed(s, secret)
				packer := Packer{Secret: secret}
				packer.Begin(s)
				for _, value := range values {
					mutation := &state.Mutation{Series: s, Tile: 7, Text: &state.Text{Member: value, Key: []byte("c")}}
					held.Apply(mutation)
					packer.Add(mutation)
				}
				known := func(uint32) *state.Series { return s }
				compacted, err := (&Compactor{Secret: secret}).Compact(nil, packer.End(nil), known, none, 0, Nonce{1})
				if err != nil {
					t.Fatal(err)
				}
				parts, err := Unpack(compacted, secret, known)
				if err != nil {
					t.Fatal(err)
				}
				for how, of := range map[string]State{"applied": held, "packed": parts[0].State} {
					got := of.Read(&state.Read{Series: s, First: 7, Last: 7})
					if s == per {
						got = got.Groups[0].WindowState
					}
					count, relative := got.Count, 0.0081
					if s.Measure == state.Distinct {
						count, relative = got.EstimateDistinct()
					}
					if math.Abs(float64(count-n)) > 6*relative*n {
						t.Errorf("%d values with %s by %s, %s as %s, are counted as %d", n, kind, name, how, s.Measure, count)
					}
				}
			}
		}
	}
}
