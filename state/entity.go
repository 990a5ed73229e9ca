package state

import (
	"bytes"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-stream/weir/value"
)

// An entity is what a feature is about: the values of its by-fields, in the order of EntityFields.
// Its text is the values joined by '|', with '|' and '\' escaped by '\', so no two entities have
// the same text. Long values are shortened, see Shorten.
//
// The entity of the first value alone is the parent of an entity of several values. All children of
// a parent are in its shard, because their state may be embedded in its key.

// EntityFields sorts by-fields in place into the order of an entity's values: the first stays
// first, because it names the parent; the others follow by name.
func EntityFields(by []string) []string {
	if len(by) > 1 {
		slices.Sort(by[1:])
	}
	return by
}

// AppendEntity appends one more value of an entity's text.
func AppendEntity(dst []byte, first bool, v value.Value) []byte {
	if !first {
		dst = append(dst, '|')
	}
	if v.Type != value.String {
		return v.AppendText(dst)
	}
	text := v.Str
	if len(text) > value.MaxText {
		text = value.Shorten(nil, text, value.MaxText)
	}
	if bytes.IndexByte(text, '|') < 0 && bytes.IndexByte(text, '\\') < 0 {
		return append(dst, text...)
	}
	for _, c := range text {
		if c == '|' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}

// EntityHash returns the hash that determines an entity's shard: its parent's hash, if it has a parent.
func EntityHash(entity []byte) uint64 {
	parent, _ := SplitParent(entity)
	return xxhash.Sum64(parent)
}

// SplitParent splits an entity's text into its parent's and the values that distinguish it from the
// parent's other children. An entity of one value is its own parent, and child is empty.
func SplitParent(entity []byte) (parent, child []byte) {
	if bytes.IndexByte(entity, '|') < 0 { // most have one value
		return entity, nil
	}
	for i := 0; i < len(entity); i++ {
		switch entity[i] {
		case '\\':
			i++
		case '|':
			return entity[:i], entity[i+1:]
		}
	}
	return entity, nil
}

// Shard returns the shard, 0 to shards-1, of an entity with a hash.
func Shard(hash uint64, shards int) int {
	if n := uint64(shards); n&(n-1) == 0 {
		return int(hash & (n - 1)) // the same, without a division of 64 bits
	}
	return int(hash % uint64(shards))
}

var unescape = strings.NewReplacer(`\\`, `\`, `\|`, "|")

// Unescape returns an unescaped value of an entity's text.
func Unescape(escaped string) string { return unescape.Replace(escaped) }

// SplitEntity appends the values of an entity's text to dst, still escaped.
func SplitEntity(dst []string, text string) []string {
	start := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '|':
			dst = append(dst, text[start:i])
			start = i + 1
		}
	}
	return append(dst, text[start:])
}

// NameEntity writes an entity's text for people: name=value for each of its fields, between separators.
func NameEntity(by []string, text, separator string) string {
	values := SplitEntity(nil, text)
	for i := range values {
		values[i] = by[i] + "=" + Unescape(values[i])
	}
	return strings.Join(values, separator)
}
