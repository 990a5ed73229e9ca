package redisstore

import (
	"context"
	"errors"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// location is where the state of an entity in a group is: in a key of its own and, for an entity of several values,
// embedded in its parent's key.
type location struct {
	key    string
	parent string // the parent's key, empty for none
	tag    uint32 // of the embedded children
	child  []byte // the name of this child
}

// usualKeyBytes is the length of all but unusually long keys.
const usualKeyBytes = 64

// locate finds the state of an entity in a series' group.
func (s *Store) locate(series *state.Series, entity string) location {
	var room [usualKeyBytes]byte
	l := location{key: string(s.appendKey(room[:0], series, entity))}
	if series.Parent != "" {
		text := unsafe.Slice(unsafe.StringData(entity), len(entity)) // read only
		parent, _ := state.SplitParent(text)
		l.parent = string(s.appendEntityKey(room[:0], s.shardOf(entity), series.Parent, parent))
		l.tag, l.child = state.EmbeddingTag(series.Group), s.hashing.AppendChild(nil, text)
	}
	return l
}

// keys returns the keys to read.
func (l *location) keys(list []string) []string {
	list = append(list, l.key)
	if l.parent != "" {
		list = append(list, l.parent)
	}
	return list
}

// take extracts the state from the content of the keys. It fails if that is damaged.
func (l *location) take(values [][]byte) (held []byte, losses packed.Losses, err error) {
	if l.parent == "" {
		return values[0], nil, nil
	}
	if held, losses, err = packed.WithEmbedded(values[0], values[1], l.tag, l.child); err != nil {
		err = keyspace.NewError(l.parent, err)
	}
	return held, losses, err
}

// maxKeys is how many keys may hold an entity's state: its own and its parent's.
const maxKeys = 2

// reading reads keys at one moment.
type reading struct {
	keys    []string
	one     *redis.StringCmd
	all     *redis.SliceCmd
	lengths [maxKeys]*redis.IntCmd

	// Room for keys and values, which saves allocations.
	keyRoom   [maxKeys]string
	valueRoom [maxKeys][]byte
}

// ask appends the commands.
func (r *reading) ask(ctx context.Context, commands []redis.Cmder) []redis.Cmder {
	if len(r.keys) == 1 {
		r.one = redis.NewStringCmd(ctx, "get", r.keys[0])
		return append(commands, r.one)
	}
	// If something were applied or spilled between two commands, one reply would have it and the other not. MGET treats
	// a key that does not hold a string as missing; STRLEN and GET return an error.
	args := []any{"mget"}
	for i, key := range r.keys {
		r.lengths[i] = redis.NewIntCmd(ctx, "strlen", key)
		commands, args = append(commands, r.lengths[i]), append(args, key)
	}
	r.all = redis.NewSliceCmd(ctx, args...)
	return append(commands, r.all)
}

// err returns why the keys were not read; nil if they were, also if they hold no strings.
func (r *reading) err() error {
	if r.one != nil {
		return ofServer(r.one.Err())
	}
	for i := range r.keys {
		if err := ofServer(r.lengths[i].Err()); err != nil {
			return err
		}
	}
	return ofServer(r.all.Err())
}

// ofServer drops errors about the content of a key.
func ofServer(err error) error {
	if err == nil || errors.Is(err, redis.Nil) || keyspace.Foreign(err) {
		return nil
	}
	return err
}

// values returns the contents of the keys, not to be changed. It fails if one does not hold a string.
func (r *reading) values() (values [][]byte, err error) {
	if r.one != nil {
		text, _ := r.one.Result() // an error means that there is no such key
		return append(r.valueRoom[:0], unsafe.Slice(unsafe.StringData(text), len(text))), keyspace.NotString(r.keys[0], r.one.Err())
	}
	values = r.valueRoom[:0]
	for i, key := range r.keys {
		err = errors.Join(err, keyspace.NotString(key, r.lengths[i].Err()))
		text, _ := r.all.Val()[i].(string)
		values = append(values, unsafe.Slice(unsafe.StringData(text), len(text)))
	}
	return values, err
}
