package keyspace

import (
	"errors"
	"fmt"
	"strings"
)

// keyError is an error about a state key. Its text, which is logged, names the shard and the group, but not the entity.
type keyError struct {
	key string
	err error
}

// NewError wraps an error about a key.
func NewError(key string, err error) error { return &keyError{key, err} }

func (e *keyError) Error() string { return fmt.Sprintf("key %q: %v", withoutEntity(e.key), e.err) }

func (e *keyError) Unwrap() error { return e.err }

// Key returns the whole key.
func (e *keyError) Key() string { return e.key }

// Foreign reports whether an error means that a key does not hold a string: something other than Weir has written it.
func Foreign(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") }

// NotString wraps an error about a key as ErrForeign if the key does not hold a string.
func NotString(key string, err error) error {
	if !Foreign(err) {
		return nil
	}
	return NewError(key, ErrForeign)
}

// ErrForeign is the error for a key that does not hold a string.
var ErrForeign = errors.New("it holds no state: something else has written a value of another type (WRONGTYPE)")

// withoutEntity returns a state key up to its entity.
func withoutEntity(key string) string {
	tag := strings.IndexByte(key, '}') + 1
	return key[:tag+strings.IndexByte(key[tag:], ':')+1] + "…"
}
