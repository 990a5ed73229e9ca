package plain_test

import (
	"testing"

	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/storetest"
	"github.com/weir-stream/weir/store/storetest/plain"
)

// The plain store passes the conformance suite.
func TestConformance(t *testing.T) {
	storetest.TestStore(t, func(shards int) store.Store { return plain.New(shards) })
}
