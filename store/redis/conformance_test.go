package redisstore

import (
	"testing"

	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/storetest"
)

// The store passes the conformance suite on each kind of server.
func TestConformance(t *testing.T) {
	for name, connect := range servers {
		t.Run(name, func(t *testing.T) {
			client := connect(t)
			storetest.TestStore(t, func(shards int) store.Store { return newStore(t, client, shards) })
		})
	}
}
