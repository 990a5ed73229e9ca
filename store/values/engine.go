// Package values is a store on any engine that keeps values by keys, and changes several values of one shard in one step. The
// state of an entity in a group of series is one value, packed as package state/packed has it, and so is the record of a shard.
//
// A batch's share of a shard takes one step: it reads the record and the values of the batch's entities, and writes the record
// with the positions after the batch, and the values with its mutations. A step that an engine does not confirm may be taken again:
// the record says what was applied.
package values

import (
	"context"
	"time"

	"github.com/weir-stream/weir/store/protocol"
)

// Key names a value: the state of an entity in a group, or a record if the group is empty.
type Key struct {
	Shard  int // a negative number is that of a register
	Group  string
	Entity string
}

// layoutRegister says what the namespace is like. It is beside the registers of the protocol.
const layoutRegister = protocol.Busiest - 1

// Value is a value that was read.
type Value struct {
	Bytes []byte // nil if there is none. Callers do not change it
	Err   error  // why it could not be read: a state.ErrUnavailable if others can
}

// Write writes a value.
type Write struct {
	Key   Key
	Bytes []byte
	Keep  time.Duration // from now on, at least; 0 forever
}

// Engine keeps values. It is safe for concurrent use.
type Engine interface {
	// Read reads values, in the order of their keys, in one round trip.
	Read(ctx context.Context, keys []Key) []Value
	// Update has change decide on writes, given values of one shard in the order of their keys, and makes them, if nobody has
	// changed these values since they were read. All writes are made or none is, but after an error other than state.ErrUnavailable
	// they may have been made. It may call change several times, which must then forget what it decided before.
	Update(ctx context.Context, shard int, keys []Key, change func(held [][]byte) []Write) error
	// Empty removes all values of a shard but its record, some at a time. It ends early once the record, as it is in the same step,
	// says that the shard has begun.
	Empty(ctx context.Context, shard int, begun func(record []byte) bool) error
	// Clock returns the clock of a shard's server in ms since 1970, or of any server for a register, as far as is known without a
	// request.
	Clock(shard int) int64
	// Available returns nil if a shard can be reached, as far as is known. It makes no request.
	Available(shard int) error
	// Down returns why no shard can be reached; nil if some can. It makes no request.
	Down() error
}
