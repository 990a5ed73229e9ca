package plain_test

import (
	"testing"

	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/storetest"
	"github.com/weir-stream/weir/store/storetest/plain"
)

// The store does what stores must.
func TestConformance(t *testing.T) {
	storetest.TestStore(t, func(shards int) store.Store { return plain.New(shards) })
}
