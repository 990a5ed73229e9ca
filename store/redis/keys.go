package redisstore

import (
	"strconv"

	"github.com/weir-stream/weir/state"
)

// Every key that Weir keeps in Redis is named here. All keys of a state shard
// carry a hash tag such as {namespace:12.k3fa}, which chooses the slot (see
// ShardTag), so that they are in one slot of a cluster and one script may change them
// together.
//
//	key                                   type    holds
//	<ns>:layout                           HASH    format, shards, hash_entities
//	<tag>progress                         HASH    how far the shard is in each partition; see find.lua
//	<tag><group>:<entity>                 STRING  state of the group's series; see package state

// layoutKey holds what a namespace was made with.
func layoutKey(namespace string) string { return namespace + ":layout" }

// progressKey is the shard's progress through the topics.
func progressKey(tag string) string { return tag + "progress" }

// progressField is the field of a partition in a shard's progress.
func progressField(p state.Partition) string {
	return p.Topic + "/" + strconv.Itoa(int(p.ID))
}

// logField is the field of a shard's progress that says what log a tag stands for.
func logField(tag string) string { return "log:" + tag }

// clockField is the field of a shard's progress with the greatest timestamp of
// a record applied; no partition's field lacks the '/'.
const clockField = "now"

// lagField is the field of a shard's progress with the least time, in ms, by which
// the newest record applied was behind Redis' clock; see state.History.
const lagField = "lag"

// appendEntityKey appends the key of what a group keeps of an entity, by its
// pseudonym where there are some.
func (s *Store) appendEntityKey(dst []byte, shard int, group string, entity []byte) []byte {
	if s.hashing == nil {
		return appendStateKey(dst, s.tags[shard], group, entity)
	}
	var name [keyHashLength]byte
	return appendStateKey(dst, s.tags[shard], group, s.hashing.append(name[:0], entity))
}

// appendStateKey appends the key of what a group keeps of an entity. No group's
// name is as long as "progress".
func appendStateKey(dst []byte, tag, group string, entity []byte) []byte {
	dst = append(append(dst, tag...), group...)
	return append(append(dst, ':'), entity...)
}
