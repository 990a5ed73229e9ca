package value

import "math"

// earthRadius is the mean radius of the Earth in km, R1 of the IUGG.
const earthRadius = 6371.0088

// Distance returns the distance of two locations in km by the haversine formula, which is precise for near ones too
// (Sinnott, "Virtues of the Haversine", Sky and Telescope 68, 1984).
func Distance(a, b Value) float64 {
	const radian = math.Pi / 180
	half := func(degrees float64) float64 {
		s := math.Sin(degrees * radian / 2)
		return s * s
	}
	h := half(b.Flt-a.Flt) + math.Cos(a.Flt*radian)*math.Cos(b.Flt*radian)*half(b.Lon-a.Lon)
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}
