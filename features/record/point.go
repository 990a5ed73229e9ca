package record

import (
	"bytes"

	"github.com/weir-stream/weir/value"
)

// Points are the ways to write a location as one value: an array or a text of two numbers, or a text such as POINT(13.4 52.5).
var Points = []string{"lon_lat", "lat_lon", "wkt"}

// point reads a location that is one value. empty reports whether it is a point that is nowhere.
func (d *Datum) point(form string) (lat, lon float64, empty, ok bool) {
	text := bytes.TrimSpace(d.Text)
	switch {
	case form == "wkt":
		if text, ok = wellKnown(text); !d.isText() || !ok {
			return 0, 0, false, false
		}
		if bytes.EqualFold(text, []byte("EMPTY")) {
			return 0, 0, true, true
		}
		text, ok = within(text, '(', ')')
	case d.Type == Array:
		text, ok = within(text, '[', ']')
	case d.isText():
		if bare, inBrackets := within(text, '(', ')'); inBrackets {
			text = bare
		} else if bare, inBrackets := within(text, '[', ']'); inBrackets {
			text = bare
		}
		ok = true
	}
	if !ok {
		return 0, 0, false, false
	}
	separator := byte(',')
	if form == "wkt" {
		separator = ' '
	}
	lon, text, ok1 := coordinate(text, separator)
	lat, text, ok2 := coordinate(text, separator)
	if len(text) > 0 { // an altitude
		_, text, ok = coordinate(text, separator)
	}
	if form == "lat_lon" {
		lat, lon = lon, lat
	}
	return lat, lon, false, ok && ok1 && ok2 && len(text) == 0 && inDegrees(lat, 90) && inDegrees(lon, 180)
}

func inDegrees(f, limit float64) bool { return -limit <= f && f <= limit }

// within returns what is between brackets.
func within(text []byte, opening, closing byte) ([]byte, bool) {
	if len(text) < 2 || text[0] != opening || text[len(text)-1] != closing {
		return text, false
	}
	return text[1 : len(text)-1], true
}

// coordinate reads the number at the beginning of a text, up to a separator, and returns what follows it.
func coordinate(text []byte, separator byte) (f float64, rest []byte, ok bool) {
	text = bytes.TrimSpace(text)
	number := text
	if i := bytes.IndexByte(text, separator); i >= 0 {
		number, rest = bytes.TrimSpace(text[:i]), text[i+1:]
		if len(rest) == 0 {
			return 0, nil, false
		}
	}
	if len(number) == 0 || value.ScanNumber(number, 0) != len(number) {
		return 0, nil, false
	}
	f, ok = value.ParseFloat(number)
	return f, rest, ok
}

// wellKnown returns what follows the word POINT and what says its dimensions, in the text of a point.
func wellKnown(text []byte) (rest []byte, ok bool) {
	if i := bytes.IndexByte(text, ';'); i >= 0 && len(text) > 5 && bytes.EqualFold(text[:5], []byte("SRID=")) {
		text = bytes.TrimSpace(text[i+1:])
	}
	if len(text) < 5 || !bytes.EqualFold(text[:5], []byte("POINT")) {
		return nil, false
	}
	text = bytes.TrimSpace(text[5:])
	if len(text) > 1 && text[0]|0x20 == 'z' {
		text = bytes.TrimSpace(text[1:])
	}
	return text, true
}
