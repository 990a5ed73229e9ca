package plain_test

import (
	"testing"

	"github.com/weir-stream/weir/store/storetest"
	"github.com/weir-stream/weir/store/storetest/plain"
)

// The plain store passes the whole conformance suite.
func TestConformance(t *testing.T) {
	storetest.TestStore(t, func(shards, _ int) storetest.Namespace { return plain.New(shards) })
	storetest.TestTime(t, func(shards int) storetest.Timed { return plain.New(shards) })
	storetest.TestPartialFailure(t, func(shards int) storetest.Parted { return plain.New(shards) })
}
