package value

import (
	"crypto/sha256"
	"encoding/base64"
	"unicode/utf8"
)

// The greatest lengths of a value's text, in bytes.
const (
	// MaxText is the default, and always that of a value in an entity's text.
	MaxText = 256
	// LeastMaxText is the least limit that a field may set.
	LeastMaxText = 2 * hashText
)

// hashText is the length of the suffix of a shortened text: a mark, and 132 bits of the text's
// SHA-256 in base64url.
const hashText = 1 + 22

// Shorten appends a text; if it is longer than `most` bytes, it appends a prefix and a hash of all of it. Different
// texts stay different, since it is infeasible to construct two with the same hash, but for the result itself, which stays as
// it is: answers name values by it, and these may be asked about. A rule also asks about what an event says: if the result, sent
// as a value, were another value, an asker could not tell which is meant.
func Shorten(dst, text []byte, most int) []byte {
	if len(text) <= most {
		return append(dst, text...)
	}
	n := most - hashText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	sum := sha256.Sum256(text)
	dst = append(append(dst, text[:n]...), '~')
	return append(dst, base64.RawURLEncoding.EncodeToString(sum[:])[:hashText-1]...)
}

// Kept returns the value as it is stored with a text of at most `most` bytes: long strings are shortened.
func (v Value) Kept(most int) Value {
	if v.Type == String && len(v.Str) > most {
		v.Str = Shorten(nil, v.Str, most)
	}
	return v
}
