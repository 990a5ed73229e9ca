package store

import (
	"errors"
	"log/slog"
)

// keyError is an error about one key. The key may name an entity, so it is not part of the message.
type keyError interface {
	error
	Key() string
}

// DebugKey logs the key of an error about a key, at debug level.
func DebugKey(log *slog.Logger, err error) {
	if about, ok := errors.AsType[keyError](err); ok {
		log.Debug("it is about a key", "key", about.Key())
	}
}
