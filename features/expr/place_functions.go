package expr

import (
	"math"

	"github.com/weir-stream/weir/value"
)

// placeFunctions are those of locations:
//
//	location(lat, lon)   the place at two coordinates in degrees; null if they are out of range
//	haversine(a, b)      the distance of two places in km, see value.Distance
var placeFunctions = map[string]function{
	"location":  of("lat, lon", value.Location, location, value.Float, value.Float),
	"haversine": of("a, b", value.Float, haversine, value.Location, value.Location),
}

func location(_ *frame, args []*value.Value) value.Value {
	lat, lon := args[0].Float64(), args[1].Float64()
	if math.Abs(lat) > 90 || math.Abs(lon) > 180 {
		return value.Value{}
	}
	return value.Value{Type: value.Location, Flt: lat, Lon: lon}
}

func haversine(_ *frame, args []*value.Value) value.Value {
	return value.Value{Type: value.Float, Flt: value.Distance(*args[0], *args[1])}
}
