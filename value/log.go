package value

import "math"

// Log is math.Log. On amd64 that is wrong for denormals, by 35 for the least: they would have other logarithms than on other
// machines, and fall into other bins of a sketch.
func Log(x float64) float64 {
	const leastNormal = 0x1p-1022
	if x > 0 && x < leastNormal {
		return math.Log(x*0x1p52) - 52*math.Ln2
	}
	return math.Log(x)
}
