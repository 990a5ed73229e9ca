package query

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Answers are encoded by hand: encoding/json takes several times as long, and encoding is most of the work of an
// answer.

// AppendJSON appends the answer as an object, in the form of questions over HTTP and of enriched
// events.
func (a *Answer) AppendJSON(dst []byte) []byte { return a.AppendJSONAfter(dst, nil) }

// AppendJSONAfter appends the answer like AppendJSON. It takes less time if another answer has covered the same.
func (a *Answer) AppendJSONAfter(dst []byte, others *Coverages) []byte {
	dst = a.AppendValue(append(dst, `{"value":`...))
	dst = append(dst, `,"status":"`...)
	dst = append(dst, a.Status...)
	return a.AppendCoverage(append(dst, '"'), others)
}

// AppendValue appends only the value, of any shape.
func (a *Answer) AppendValue(dst []byte) []byte {
	switch {
	case a.Items == nil:
		return AppendTyped(dst, a.Value)
	case a.Shape == aggregate.Categories:
		return appendCategories(dst, a.Items)
	default:
		return appendItems(dst, a.Items, a.Shape)
	}
}

// Coverages are what the last answers covered, in JSON: the answers to a question mostly cover few different times. Its
// zero value is empty.
type Coverages struct {
	list   []coverageText
	oldest int // in a full list
}

type coverageText struct {
	from, to int64
	exact    bool
	json     []byte
}

// Reset empties the list.
func (c *Coverages) Reset() { c.list, c.oldest = c.list[:0], 0 }

// append appends what an answer covers; it uses and extends the list, which may be nil.
func (c *Coverages) append(dst []byte, a *Answer) []byte {
	if c == nil {
		return a.appendCovered(dst)
	}
	for i := range c.list {
		if t := &c.list[i]; t.from == a.From && t.to == a.To && t.exact == a.Exact {
			return append(dst, t.json...)
		}
	}
	const most = 16 // a search of more would take as long as formatting
	n := len(c.list)
	if n < most {
		c.list = slices.Grow(c.list, 1)[:n+1] // with memory of earlier ones
	} else {
		n = c.oldest
		c.oldest = (n + 1) % most
	}
	start := len(dst)
	dst = a.appendCovered(dst)
	c.list[n] = coverageText{a.From, a.To, a.Exact, append(c.list[n].json[:0], dst[start:]...)}
	return dst
}

func (a *Answer) appendCovered(dst []byte) []byte {
	dst = append(dst, `,"from":`...)
	if a.From != state.MinTime {
		dst = strconv.AppendInt(dst, a.From, 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"to":`...)
	dst = strconv.AppendInt(dst, a.To, 10)
	dst = append(dst, `,"exact":`...)
	return strconv.AppendBool(dst, a.Exact)
}

// AppendCoverage appends the rest of an answer and ends the object: what the value covers, and how exact it is. See
// AppendJSONAfter.
func (a *Answer) AppendCoverage(dst []byte, others *Coverages) []byte {
	dst = others.append(dst, a)
	if a.StandardError != 0 {
		dst = append(dst, `,"standard_error":`...)
		dst = appendFloat(dst, a.StandardError)
	}
	if a.RelativeError != 0 {
		dst = append(dst, `,"relative_error":`...)
		dst = appendFloat(dst, a.RelativeError)
	}
	if a.FalsePositiveRate != 0 {
		dst = append(dst, `,"false_positive_rate":`...)
		dst = appendFloat(dst, a.FalsePositiveRate)
	}
	if a.Uncertain != 0 {
		dst = append(dst, `,"uncertain":`...)
		dst = strconv.AppendInt(dst, a.Uncertain, 10)
	}
	if a.Capped {
		dst = append(dst, `,"capped":true`...)
	}
	if a.LaterEvents {
		dst = append(dst, `,"later_events":true`...)
	}
	if a.CompleteSince != state.MinTime {
		dst = append(dst, `,"complete_since":`...)
		dst = strconv.AppendInt(dst, a.CompleteSince, 10)
	}
	if a.Filling {
		dst = append(dst, `,"filled":`...)
		dst = strconv.AppendFloat(dst, a.Filled, 'f', 3, 64)
	}
	if a.CompleteAt != 0 {
		dst = append(dst, `,"complete_at":`...)
		dst = strconv.AppendInt(dst, a.CompleteAt, 10)
	}
	if a.Status == OutsideMaxAge {
		dst = append(dst, `,"oldest":`...)
		dst = strconv.AppendInt(dst, a.Oldest, 10)
	}
	return append(dst, '}')
}

// AppendTyped appends a value that is not a list: decimals exactly, floats in their shortest form.
func AppendTyped(dst []byte, v value.Value) []byte {
	switch v.Type {
	case value.String:
		return AppendString(dst, v.Str)
	case value.Float:
		return appendFloat(dst, v.Flt)
	case value.Location:
		dst = append(dst, `{"lat":`...)
		dst = appendFloat(dst, v.Flt)
		dst = append(dst, `,"lon":`...)
		dst = appendFloat(dst, v.Lon)
		return append(dst, '}')
	case value.Null:
		return append(dst, "null"...)
	default:
		return v.AppendText(dst)
	}
}

// appendItems appends a list: of values, of {"value","count"} or of {"from","to","count"}.
func appendItems(dst []byte, items []aggregate.Item, shape aggregate.Shape) []byte {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		item := &items[i]
		switch shape {
		case aggregate.Counts:
			dst = append(dst, `{"value":`...)
			dst = AppendTyped(dst, item.Value)
		case aggregate.Bins:
			dst = append(dst, `{"from":`...)
			dst = AppendTyped(dst, item.From)
			dst = append(dst, `,"to":`...)
			dst = AppendTyped(dst, item.To)
		default:
			dst = AppendTyped(dst, item.Value)
			continue
		}
		dst = append(dst, `,"count":`...)
		dst = strconv.AppendInt(dst, item.Count, 10)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// appendCategories appends an object whose names are the categories' texts.
func appendCategories(dst []byte, items []aggregate.Item) []byte {
	dst = append(dst, '{')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, items[i].Category.AppendText(nil))
		dst = append(dst, ':')
		dst = AppendTyped(dst, items[i].Value)
	}
	return append(dst, '}')
}

// appendFloat appends null for floats that JSON cannot represent.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	format := byte('f')
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

const hexDigits = "0123456789abcdef"

// AppendString appends a JSON string; bytes that are not UTF-8 become U+FFFD.
func AppendString[S []byte | string](dst []byte, s S) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			// A rune takes at most UTFMax bytes; only these are copied.
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		}
		i++
	}
	return append(dst, '"')
}
