// Package keyspace names every key that Weir keeps in Redis, and computes slots and times to live.
// It also has the errors about keys that something else has written.
package keyspace

import (
	"strings"
	"time"
)

// All keys of a shard have a hash tag such as {namespace:12kfa}, which determines the slot (see ShardTag). So they
// are in one slot of a cluster, and one script can change them together.
//
//	key                                   type    holds
//	<ns>:layout                           HASH    format, shards, hash_entities, secret
//	<tag>progress                         HASH    how far the shard is in each partition; see package progress
//	<tag><group>:<entity>                 STRING  state of the group's series; see package state
//	<tag>changed/<token>                  SET     keys changed while the shard is copied; see package reshard

// LayoutKey holds the layout of a namespace.
func LayoutKey(namespace string) string { return namespace + ":layout" }

// ProgressKey returns the key of the shard's progress.
func ProgressKey(tag string) string { return tag + "progress" }

// CopyingField is the field of a shard's progress that exists while the shard is copied to others. It holds the token
// of the process that copies. Meanwhile the scripts that change state keys add their names to the set ChangedKey.
const CopyingField = "copying"

// FrozenField is the field of a shard's progress that exists at the end of copying, and in the new shards until they
// are complete: nothing may change the shard meanwhile. In new shards it holds the token of the process that copies.
const FrozenField = "frozen"

// ChangedKey returns the set of the state keys of a shard that have changed since the process with a token began to
// copy it.
func ChangedKey(tag, token string) string { return tag + "changed/" + token }

// AnewField is the field of a new shard's progress that says that the old shard had none: no keys are to be copied again.
const AnewField = "anew"

// Fields of the layout.
const (
	// ShardsField is the number of shards. In the progress of old shards it is the number of those that took over.
	ShardsField = "shards"
	// SecretField holds the namespace's state.Secret.
	SecretField = "secret"
	// FormatField is the version of the layout of keys and values.
	FormatField = "format"
	// ReshardingField is the number of shards that the namespace is being spread over.
	ReshardingField = "resharding"
	// ResharderField is the token of the process that reshards. The progress of shards has it, too: of the process that
	// last took them.
	ResharderField = "resharder"
	// OldShardsField is the number of shards before the switch, whose keys are not yet deleted.
	OldShardsField = "old_shards"
	// SwitchedField is the time of the switch, in seconds by the clock of Redis.
	SwitchedField = "switched"
)

// LayoutFields are the fields that each layout has, in the order in which they are written. Each shard has them in its
// progress, too, since it began. The master of the layout may lose it in a failover, or in a restart without a file, while
// other masters keep their shards, whose state cannot be found and read without them.
var LayoutFields = []string{SecretField, HashingField, FormatField, ShardsField}

// Pattern returns the pattern by which SCAN finds the keys of a namespace's shards.
func Pattern(namespace string) string {
	return "{" + strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(namespace) + ":*"
}

// Tag returns the hash tag of a shard's key, empty for any other key.
func Tag(key string) string { return key[:strings.IndexByte(key, '}')+1] }

// SplitKey splits a state key into tag, group and the entity's name; ok is false for any other key.
func SplitKey(key string) (tag, group, name string, ok bool) {
	end := strings.IndexByte(key, '}') + 1
	group, name, ok = strings.Cut(key[end:], ":")
	return key[:end], group, name, ok && end > 0
}

// AppendKey appends the key of an entity's state in a group. Names of groups are shorter than
// "progress".
func AppendKey(dst []byte, tag, group string, entity []byte) []byte {
	dst = append(append(dst, tag...), group...)
	return append(append(dst, ':'), entity...)
}

// Lifetime returns the time to live, in seconds, of a key that is kept for `keep` milliseconds.
func Lifetime(keep int64, slack time.Duration) int64 {
	const second = int64(time.Second / time.Millisecond)
	return (keep + keep/8 + slack.Milliseconds() + second - 1) / second
}
