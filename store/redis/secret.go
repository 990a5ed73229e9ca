package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/protocol"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// A process may have learnt its secret from a server that was no longer the master: one that was started again empty
// before its replica had taken over, say, where the process has drawn one. So shards are written and read only with the
// secret that they have recorded.

// learnSecret sets the namespace's secret for hashing.
func (w *writer) learnSecret(ctx context.Context) (err error) {
	w.packer.Secret, err = w.store.Secret(ctx)
	if err == nil && w.packer.Secret == (state.Secret{}) {
		err = fmt.Errorf("namespace %q has not been created", w.store.namespace)
	}
	w.secret = w.packer.Secret.Text()
	return err
}

// secretDiffers reports whether an error is that of apply.lua for a shard with another secret.
func secretDiffers(err error) bool { return strings.Contains(err.Error(), "OTHERSECRET ") }

var errOtherSecret = errors.New("the state was lost, and is written with another secret now")

// refuseOtherSecret finds the shards with another secret among the records of all shards, which then have an error. The secret is
// learnt anew.
func (s *Store) refuseOtherSecret(found []protocol.Found) {
	known := s.secret.Load()
	if known == nil {
		return
	}
	text, others := known.Text(), false
	for shard := range found {
		if of := found[shard].Fields[keyspace.SecretField]; of != "" && of != text {
			found[shard].Err, others = errOtherSecret, true
		}
	}
	if others {
		s.layoutRead.Store(0)
		_ = s.moved()
	}
}
