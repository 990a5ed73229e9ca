package record

import "testing"

// No text is anything else than a place on Earth, none, or refused.
func FuzzPoint(f *testing.F) {
	for _, text := range []string{"[13.4,52.5]", "52.5, 13.4", "(1,2)", "POINT(13.4 52.5)", "SRID=4326;POINT Z (1 2 3)", "POINT EMPTY", "[1,2", "1,,2", "SRID=", "POINT"} {
		f.Add([]byte(text), uint8(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, form uint8) {
		for _, typ := range []DatumType{String, Array, Untyped} {
			d := Datum{Type: typ, Text: text}
			lat, lon, empty, ok := d.point(Points[int(form)%len(Points)])
			if ok && !empty && (!inDegrees(lat, 90) || !inDegrees(lon, 180)) {
				t.Fatalf("%q is %f, %f", text, lat, lon)
			}
		}
	})
}
