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

// location is where a group keeps its state of an entity: in a key of its own and, of
// an entity of several values, embedded in that of its parent.
type location struct {
	key    string
	parent string // the parent's key, empty for none
	tag    uint32 // under which children are embedded there
	child  []byte // the name of this one
}

// locate finds where the state of a series' group is kept of an entity.
func (s *Store) locate(series *state.Series, entity string) location {
	l := location{key: string(s.AppendKey(nil, series, entity))}
	if series.Parent != "" {
		text := unsafe.Slice(unsafe.StringData(entity), len(entity)) // it is only read
		parent, _ := state.SplitParent(text)
		l.parent = string(s.appendEntityKey(nil, s.shardOf(entity), series.Parent, parent))
		l.tag, l.child = state.EmbeddingTag(series.Group), s.hashing.AppendChild(nil, text)
	}
	return l
}

// keys are those to be read.
func (l *location) keys(list []string) []string {
	list = append(list, l.key)
	if l.parent != "" {
		list = append(list, l.parent)
	}
	return list
}

// take is what is held by what the keys hold. The error is that this is damaged.
func (l *location) take(values [][]byte) (held []byte, losses packed.Losses, err error) {
	if l.parent == "" {
		return values[0], nil, nil
	}
	if held, losses, err = packed.WithEmbedded(values[0], values[1], l.tag, l.child); err != nil {
		err = keyspace.NewError(l.parent, err)
	}
	return held, losses, err
}

// mostKeys are those of an entity's state and its parent's.
const mostKeys = 2

// reading reads keys at one moment.
type reading struct {
	keys    []string
	one     *redis.StringCmd
	all     *redis.SliceCmd
	lengths [mostKeys]*redis.IntCmd

	// What keys and values stand in, so that they need no memory of their own.
	keyRoom   [mostKeys]string
	valueRoom [mostKeys][]byte
}

// ask appends the commands.
func (r *reading) ask(ctx context.Context, commands []redis.Cmder) []redis.Cmder {
	if len(r.keys) == 1 {
		r.one = redis.NewStringCmd(ctx, "get", r.keys[0])
		return append(commands, r.one)
	}
	// What is applied, or spilled, between two commands would be in one reply and not
	// in the other. To MGET, a key that holds no string is none; to STRLEN it is
	// an error, as it is to GET.
	args := []any{"mget"}
	for i, key := range r.keys {
		r.lengths[i] = redis.NewIntCmd(ctx, "strlen", key)
		commands, args = append(commands, r.lengths[i]), append(args, key)
	}
	r.all = redis.NewSliceCmd(ctx, args...)
	return append(commands, r.all)
}

// err is why the keys were not read; nil where they were, whatever they hold.
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

// ofServer is an error but for those that say what a key holds.
func ofServer(err error) error {
	if err == nil || errors.Is(err, redis.Nil) || keyspace.Foreign(err) {
		return nil
	}
	return err
}

// values are what the keys hold, which is only read. The error is that one holds no string.
func (r *reading) values() (values [][]byte, err error) {
	if r.one != nil {
		text, _ := r.one.Result() // its error is that there is no such key
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
