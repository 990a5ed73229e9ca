package value

import (
	"crypto/sha256"
	"encoding/base64"
	"unicode/utf8"
)

// The longest text that is kept of a value, in bytes.
const (
	// MaxText is that of a value in an entity's text, and of all others unless their
	// field says so.
	MaxText = 256
	// LeastMaxText is the least that a field may say.
	LeastMaxText = 2 * hashText
)

// hashText is the length of what ends a shortened text: a mark, and 132 bits of the
// text's SHA-256 in base64url.
const hashText = 1 + 22

// Shorten appends a text, of one longer than a number of bytes as much of its begin as
// there is room for, and a hash of all of it: so different texts stay different, and
// nobody can make two that do not.
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

// Kept is the value as it is kept where its text may have a number of bytes: long
// strings are shortened.
func (v Value) Kept(most int) Value {
	if v.Type == String && len(v.Str) > most {
		v.Str = Shorten(nil, v.Str, most)
	}
	return v
}
