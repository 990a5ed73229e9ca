package enrich

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Events are encoded by hand, as answers in JSON are: Avro's binary encoding is little more than
// variable-length integers, which encoding/binary has. The schema is that of Schema.

// eventAvro returns the event as the record Event.
func eventAvro(e *record.Event) (dst []byte) {
	for i, v := range e.Values {
		dst = avroOptional(dst, v, e.Stream.Fields[i].Type, e.Stream.Fields[i].Scale)
	}
	return dst
}

// encodeAvro makes the value of the event's record from its answers, with room for the frame.
func (n *Event) encodeAvro() {
	out := make([]byte, frameBytes, frameBytes+len(n.event)+64*len(n.stream.features))
	out = append(out, n.event...)
	for i, f := range n.stream.features {
		out = append(out, present)
		if without := n.entities[i].without; without != "" {
			out = avroText(append(out, absent), []byte(without))
			for range coverageFields {
				out = append(out, absent)
			}
			continue
		}
		a := &n.answers[i]
		out = avroAnswer(out, a, f.Type(), f.Scale())
		out = avroText(out, []byte(a.Status))
		out = avroCoverage(out, a)
	}
	n.value = out
}

// The branches of a union with null.
const (
	absent  = 0
	present = 2 // one, as Avro encodes it
)

// avroAnswer appends the value of an answer, of any shape.
func avroAnswer(dst []byte, a *query.Answer, t value.Type, scale uint8) []byte {
	if a.Items == nil {
		return avroOptional(dst, a.Value, t, scale)
	}
	dst = append(dst, present)
	if len(a.Items) > 0 {
		dst = binary.AppendVarint(dst, int64(len(a.Items)))
	}
	for i := range a.Items {
		item := &a.Items[i]
		switch a.Shape {
		case aggregate.Counts:
			dst = binary.AppendVarint(avroOptional(dst, item.Value, t, scale), item.Count)
		case aggregate.Bins:
			dst = avroOptional(avroOptional(dst, item.From, t, scale), item.To, t, scale)
			dst = binary.AppendVarint(dst, item.Count)
		case aggregate.Categories:
			dst = avroOptional(avroText(dst, item.Category.AppendText(nil)), item.Value, t, scale)
		default:
			dst = avroOptional(dst, item.Value, t, scale)
		}
	}
	return append(dst, 0) // no further block
}

// coverageFields is how many fields avroCoverage appends.
const coverageFields = 13

// avroCoverage appends the rest of an answer, as query.Answer.AppendCoverage does in JSON.
func avroCoverage(dst []byte, a *query.Answer) []byte {
	whole := func(given bool, n int64) {
		if dst = append(dst, absent); given {
			dst[len(dst)-1] = present
			dst = binary.AppendVarint(dst, n)
		}
	}
	fraction := func(given bool, f float64) {
		if dst = append(dst, absent); given {
			dst[len(dst)-1] = present
			dst = avroDouble(dst, f)
		}
	}
	whole(a.From != state.MinTime, a.From)
	whole(true, a.To)
	dst = avroBool(append(dst, present), a.Exact && !cut(a))
	fraction(a.StandardError != 0, a.StandardError)
	fraction(a.RelativeError != 0, a.RelativeError)
	fraction(a.FalsePositiveRate != 0, a.FalsePositiveRate)
	whole(a.Uncertain != 0, a.Uncertain)
	if dst = append(dst, absent); a.Capped || cut(a) {
		dst[len(dst)-1] = present
		dst = avroBool(dst, true)
	}
	if dst = append(dst, absent); a.LaterEvents {
		dst[len(dst)-1] = present
		dst = avroBool(dst, true)
	}
	whole(a.CompleteSince != state.MinTime, a.CompleteSince)
	fraction(a.Filling, a.Filled)
	whole(a.CompleteAt != 0, a.CompleteAt)
	whole(a.Status == query.OutsideMaxAge, a.Oldest)
	return dst
}

// cut reports whether an answer has an integer that a long cannot hold.
func cut(a *query.Answer) bool {
	wide := a.Value.Type == value.Int && a.Value.Wide()
	for i := range a.Items {
		wide = wide || a.Items[i].Value.Type == value.Int && a.Items[i].Value.Wide()
	}
	return wide
}

// avroOptional appends a value of a type, or null.
func avroOptional(dst []byte, v value.Value, t value.Type, scale uint8) []byte {
	if v.IsNull() {
		return append(dst, absent)
	}
	switch t {
	case value.Int, value.Timestamp:
		return binary.AppendVarint(append(dst, present), long(v))
	case value.Float:
		if f := v.Float64(); !math.IsNaN(f) && !math.IsInf(f, 0) { // null as in JSON
			return avroDouble(append(dst, present), f)
		}
		return append(dst, absent)
	case value.Bool:
		return avroBool(append(dst, present), v.Num != 0)
	case value.Decimal:
		return avroDecimal(append(dst, present), v, scale)
	case value.Location:
		return avroDouble(avroDouble(append(dst, present), v.Flt), v.Lon)
	default:
		return avroText(append(dst, present), v.Str)
	}
}

// long returns an integer, or the long nearest to it.
func long(v value.Value) int64 {
	switch {
	case !v.Wide():
		return v.Num
	case v.Carry < 0:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}

func avroBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func avroDouble(dst []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

// avroText appends a string; bytes that are not UTF-8 become U+FFFD.
func avroText(dst, text []byte) []byte {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	return append(binary.AppendVarint(dst, int64(len(text))), text...)
}

// avroDecimal appends the digits of a number at a scale as a big-endian two's complement.
func avroDecimal(dst []byte, v value.Value, scale uint8) []byte {
	n := v.Big()
	n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale-v.Scale)), nil))
	// The sign needs a bit of its own.
	magnitude := n
	if n.Sign() < 0 {
		magnitude = new(big.Int).Not(n)
	}
	size := magnitude.BitLen()/8 + 1
	if n.Sign() < 0 {
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return append(binary.AppendVarint(dst, int64(size)), n.FillBytes(make([]byte, size))...)
}
