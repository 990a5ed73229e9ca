// Package keyspace names every key that Weir keeps in Redis, says which slot it is in and how long it lives, and what is
// wrong with one that holds something else.
package keyspace

import (
	"strconv"
	"time"

	"github.com/weir-stream/weir/state"
)

// All keys of a state shard carry a hash tag such as {namespace:12.k3fa}, which chooses the slot (see ShardTag), so that
// they are in one slot of a cluster and one script may change them together.
//
//	key                                   type    holds
//	<ns>:layout                           HASH    format, shards, hash_entities
//	<tag>progress                         HASH    how far the shard is in each partition; see find.lua
//	<tag><group>:<entity>                 STRING  state of the group's series; see package state

// LayoutKey holds what a namespace was made with.
func LayoutKey(namespace string) string { return namespace + ":layout" }

// ProgressKey is the shard's progress through the topics.
func ProgressKey(tag string) string { return tag + "progress" }

// PartitionField is the field of a partition in a shard's progress.
func PartitionField(p state.Partition) string {
	return p.Topic + "/" + strconv.Itoa(int(p.ID))
}

// LogField is the field of a shard's progress that says what log a tag stands for.
func LogField(tag string) string { return "log:" + tag }

// ClockField is the field of a shard's progress with the greatest timestamp of
// a record applied; no partition's field lacks the '/'.
const ClockField = "now"

// LagField is the field of a shard's progress with the least time, in ms, by which
// the newest record applied was behind Redis' clock; see state.History.
const LagField = "lag"

// AppendKey appends the key of what a group keeps of an entity. No group's
// name is as long as "progress".
func AppendKey(dst []byte, tag, group string, entity []byte) []byte {
	dst = append(append(dst, tag...), group...)
	return append(append(dst, ':'), entity...)
}

// Lifetime is the time to live, in seconds, of a key that is kept so many milliseconds.
func Lifetime(keep int64, slack time.Duration) int64 {
	const second = int64(time.Second / time.Millisecond)
	return (keep + keep/8 + slack.Milliseconds() + second - 1) / second
}
