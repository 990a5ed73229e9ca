package keyspace

import (
	"errors"
	"fmt"
	"strings"
)

// Error is what is wrong with a state key. Its text, which is logged, says
// shard and group and leaves out the entity.
type Error struct {
	key string
	err error
}

// NewError is that something is wrong with a key.
func NewError(key string, err error) error { return &Error{key, err} }

func (e *Error) Error() string { return fmt.Sprintf("key %q: %v", withoutEntity(e.key), e.err) }

func (e *Error) Unwrap() error { return e.err }

// Key is the whole key.
func (e *Error) Key() string { return e.key }

// Foreign says whether an error is that a key holds no string: something else
// has written it.
func Foreign(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") }

// NotString is what an error says of a key, if that is that it holds no string.
func NotString(key string, err error) error {
	if !Foreign(err) {
		return nil
	}
	return NewError(key, ErrForeign)
}

// ErrForeign is what is wrong with a key that holds no string.
var ErrForeign = errors.New("it holds no state: something else has written a value of another type (WRONGTYPE)")

// withoutEntity is a state key up to its entity.
func withoutEntity(key string) string {
	tag := strings.IndexByte(key, '}') + 1
	return key[:tag+strings.IndexByte(key[tag:], ':')+1] + "…"
}
