package value

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"unicode"
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

// Shorten appends a text; if it is longer than `most` bytes, it appends what it begins with after white space, and a hash of
// all of it, so that spaces in front of a text do not hide what it is. Different
// texts stay different, since it is infeasible to construct two with the same hash, but for the result itself, which stays as
// it is: answers name values by it, and these may be asked about. A rule also asks about what an event says: if the result, sent
// as a value, were another value, an asker could not tell which is meant.
func Shorten(dst, text []byte, most int) []byte {
	if len(text) <= most {
		return append(dst, text...)
	}
	begin := beginning(text)
	if n := most - hashText; n < len(begin) {
		for n > 0 && !utf8.RuneStart(begin[n]) {
			n--
		}
		begin = begin[:n]
	}
	hash := hashOf(text)
	return append(append(append(dst, begin...), '~'), hash[:]...)
}

func beginning(text []byte) []byte { return bytes.TrimLeftFunc(text, unicode.IsSpace) }

// Head returns what a text begins with if it is one that Shorten has shortened, else all of it.
func Head(text []byte) []byte {
	if n := len(text) - hashText; n >= 0 && text[n] == '~' {
		return text[:n]
	}
	return text
}

// Kept returns the value as it is stored with a text of at most `most` bytes: long strings are shortened.
func (v Value) Kept(most int) Value {
	if v.Type == String && len(v.Str) > most {
		v.Str = Shorten(nil, v.Str, most)
	}
	return v
}

// SameText reports whether two texts are the same value: they are equal, or one is the other as Shorten keeps it.
func SameText(a, b []byte) bool {
	s := Sought{Text: a}
	return s.Is(b)
}

// Sought is a text that is compared with others as SameText does it. It is hashed once: many kept texts may begin as it does.
type Sought struct {
	Text   []byte
	hash   [hashText - 1]byte
	hashed bool
}

// Is reports whether a text is the same value.
func (s *Sought) Is(text []byte) bool {
	switch {
	case len(text) == len(s.Text):
		return bytes.Equal(text, s.Text)
	case len(text) > len(s.Text):
		return mayShorten(s.Text, text) && hashOf(text) == [hashText - 1]byte(s.Text[len(s.Text)-hashText+1:])
	case !mayShorten(text, s.Text):
		return false
	}
	if !s.hashed {
		s.hash, s.hashed = hashOf(s.Text), true
	}
	return s.hash == [hashText - 1]byte(text[len(text)-hashText+1:])
}

// mayShorten reports whether a text is, but for the hash, the result of Shorten for a longer one.
func mayShorten(short, long []byte) bool {
	begin, n := beginning(long), len(short)-hashText
	return n >= 0 && n <= len(begin) && short[n] == '~' && (n == 0 || n == len(begin) || utf8.RuneStart(begin[n])) && bytes.Equal(short[:n], begin[:n])
}

// hashOf returns the hash in a shortened text.
func hashOf(text []byte) (hash [hashText - 1]byte) {
	sum := sha256.Sum256(text)
	var all [43]byte // of 32 bytes in base64url
	base64.RawURLEncoding.Encode(all[:], sum[:])
	copy(hash[:], all[:])
	return hash
}
