package store

import (
	"errors"
	"log/slog"
)

// KeyError is an error about one key. The key may name an entity, so it stands in no message.
type KeyError interface {
	error
	Key() string
}

// DebugKey logs the key that an error is about, if it is about one, for who looks closely.
func DebugKey(log *slog.Logger, err error) {
	if about, ok := errors.AsType[KeyError](err); ok {
		log.Debug("it is about a key", "key", about.Key())
	}
}
