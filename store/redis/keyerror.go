package redisstore

import (
	"errors"
	"fmt"
	"strings"
)

// keyError is what is wrong with a state key. Its text, which is logged, says
// shard and group and leaves out the entity.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string { return fmt.Sprintf("key %q: %v", withoutEntity(e.key), e.err) }

func (e *keyError) Unwrap() error { return e.err }

// Key is the whole key.
func (e *keyError) Key() string { return e.key }

// foreign says whether an error is that a key holds no string: something else
// has written it.
func foreign(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") }

// notString is what an error says of a key, if that is that it holds no string.
func notString(key string, err error) error {
	if !foreign(err) {
		return nil
	}
	return &keyError{key, errForeign}
}

// errForeign is what is wrong with a key that holds no string.
var errForeign = errors.New("it holds no state: something else has written a value of another type (WRONGTYPE)")

// withoutEntity is a state key up to its entity.
func withoutEntity(key string) string {
	tag := strings.IndexByte(key, '}') + 1
	return key[:tag+strings.IndexByte(key[tag:], ':')+1] + "…"
}
