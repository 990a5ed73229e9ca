package plain_test

import (
	"testing"

	"github.com/weir-stream/weir/store/storetest"
	"github.com/weir-stream/weir/store/storetest/plain"
)

func open(shards, mutations int) storetest.Namespace { return plain.NewInSteps(shards, mutations) }

// The plain store passes the whole conformance suite.
func TestConformance(t *testing.T) {
	storetest.TestStore(t, open)
	storetest.TestTime(t, func(shards int) storetest.Timed { return plain.New(shards) })
	storetest.TestPartialFailure(t, func(shards int) storetest.Parted { return plain.New(shards) })
}

// It passes many more random histories than a server could make in the same time.
func TestHistories(t *testing.T) { storetest.TestHistories(t, open, 300) }
