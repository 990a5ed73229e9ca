package state

import (
	"github.com/cespare/xxhash/v2"

	"github.com/weir-stream/weir/value"
)

// An entity is what a feature is about: the values of its by-fields, in the
// order of the fields' names. Its text is the values joined by '|', with '|'
// and '\' escaped by '\', so that no two entities share a text. Long values are
// shortened, see Shorten.

// AppendEntity appends one more value of an entity's text.
func AppendEntity(dst []byte, first bool, v value.Value) []byte {
	if !first {
		dst = append(dst, '|')
	}
	if v.Type != value.String {
		return v.AppendText(dst)
	}
	for _, c := range v.Kept(value.MaxText).Str {
		if c == '|' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}

// EntityHash is the hash by which an entity finds its shard.
func EntityHash(entity []byte) uint64 { return xxhash.Sum64(entity) }

// Shard is the state shard, 0 to shards-1, of an entity with that hash.
func Shard(hash uint64, shards int) int { return int(hash % uint64(shards)) }

// SplitEntity appends the values of an entity's text to dst, each as it stands
// there.
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
