package store

import (
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

// withoutEntity is a state key up to its entity.
func withoutEntity(key string) string {
	tag := strings.IndexByte(key, '}') + 1
	return key[:tag+strings.IndexByte(key[tag:], ':')+1] + "…"
}
