package value

import (
	"strconv"
	"strings"
)

// ParseText parses a text that AppendText wrote for a value of that type and scale; it returns null
// for any other text.
func ParseText(t Type, scale uint8, text string) Value {
	v, err := Value{Type: t, Scale: scale}, error(nil)
	switch t {
	case String:
		v.Str = []byte(text)
	case Float:
		v.Flt, err = strconv.ParseFloat(text, 64)
	case Bool:
		var yes bool
		if yes, err = strconv.ParseBool(text); yes {
			v.Num = 1
		}
	case Decimal:
		whole, behind, _ := strings.Cut(text, ".")
		if len(behind) > int(scale) {
			return Value{}
		}
		v.Num, err = strconv.ParseInt(whole+behind+strings.Repeat("0", int(scale)-len(behind)), 10, 64)
	case Int, Timestamp:
		v.Num, err = strconv.ParseInt(text, 10, 64)
	default:
		return Value{}
	}
	if err != nil {
		return Value{}
	}
	return v
}
