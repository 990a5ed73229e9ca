package store

import (
	"strconv"

	"github.com/weir-stream/weir/features/kinds"
)

// Every key that Weir keeps in Redis is named here. All keys of a state shard
// carry the hash tag {namespace:shard}, so that they are in one slot of a
// cluster and one script may change them together.
//
//	key                                   type    holds
//	<ns>:layout                           HASH    format, shards
//	{<ns>:<shard>}progress                HASH    "<topic>/<partition>" -> next offset; "now" -> greatest record timestamp
//	{<ns>:<shard>}t<group>:<entity>       HASH    "<series><tile, base 36>" -> number
//	{<ns>:<shard>}m<series>:<entity>      HASH    member -> tiles in which it was met
//	{<ns>:<shard>}h<series>:<entity>:<tile>  HyperLogLog
//	{<ns>:<shard>}z<series>:<entity>      ZSET    member -> time last met, in ms
//	{<ns>:<shard>}l<series>:<entity>      STRING  log of events; see kinds.Log

// layoutKey holds what a namespace was made with.
func layoutKey(namespace string) string { return namespace + ":layout" }

// shardTag is the hash tag that all keys of a shard begin with.
func shardTag(namespace string, shard int) string {
	return "{" + namespace + ":" + strconv.Itoa(shard) + "}"
}

// progressKey is the shard's progress through the topics.
func progressKey(tag string) string { return tag + "progress" }

// progressField is the field of a partition in a shard's progress.
func progressField(p kinds.Partition) string {
	return p.Topic + "/" + strconv.Itoa(int(p.ID))
}

// clockField is the field of a shard's progress with the greatest timestamp of
// a record applied; no partition's field lacks the '/'.
const clockField = "now"

// appendStateKey appends the key in which a series' state of an entity stands.
// The tile matters only for Sketches, which have a key for each.
func appendStateKey(dst []byte, tag string, s *kinds.Series, entity []byte, tile int64) []byte {
	dst = append(dst, tag...)
	switch s.Measure.State() {
	case kinds.Tiles:
		dst = append(append(dst, 't'), s.Group...)
	case kinds.Members:
		dst = append(append(dst, 'm'), s.ID...)
	case kinds.Sketches:
		dst = append(append(dst, 'h'), s.ID...)
	case kinds.LastSeen:
		dst = append(append(dst, 'z'), s.ID...)
	case kinds.Logs:
		dst = append(append(dst, 'l'), s.ID...)
	}
	dst = append(dst, ':')
	dst = append(dst, entity...)
	if s.Measure.State() == kinds.Sketches {
		dst = append(dst, ':')
		dst = strconv.AppendInt(dst, tile, 36)
	}
	return dst
}

// appendTileField appends the hash field of a series' tile. Base 36 is short
// and read back by Lua's tonumber.
func appendTileField(dst []byte, s *kinds.Series, tile int64) []byte {
	return strconv.AppendInt(append(dst, s.ID...), tile, 36)
}

// cursorField is the field in which a hash keeps the cursor of a walk that
// prunes it. No tile's field is as short; a member that begins with a zero
// byte is written with one more (see appendMember).
const cursorField = "\x00"

// appendMember appends the hash field of a member.
func appendMember(dst, member []byte) []byte {
	if len(member) > 0 && member[0] == 0 {
		dst = append(dst, 0)
	}
	return append(dst, member...)
}

// memberOf is the member that stands in a hash field.
func memberOf(field string) string {
	if field[:min(1, len(field))] == "\x00" {
		return field[1:]
	}
	return field
}
