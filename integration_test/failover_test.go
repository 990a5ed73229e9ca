package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Redis fails over to a replica that lacks the last writes, and Weir reads the missing events again
// from Kafka.
func TestFailoverToLaggingReplica(t *testing.T) {
	t.Parallel()
	events := fewer(30_000)
	primary := redistest.New(t, redistest.Options{})
	address := testkit.Proxy(t, primary.Addr()) // stands in for a virtual IP address
	replication := testkit.Proxy(t, primary.Addr())
	replica := redistest.NewReplica(t, replication.Addr())
	// The client follows the address, as the processes do.
	client := redis.NewClient(&redis.Options{Addr: address.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	s := newScene(t, client, "--redis.addresses", address.Addr())
	api := s.start("api")
	first, second := s.start("processor"), s.start("processor")
	var held int64
	s.flow(generate.New(seed, stream(200)), events,
		fault{"the link to the replica breaks", func() {
			awaitShared(t, first, second)
			replication.Cut()
			held = s.appliedIn(replica)
		}},
		fault{"the primary dies, the replica is promoted", func() {
			awaitShared(t, first, second)
			before := s.rewinds()
			var lost int64
			testkit.Eventually(t, time.Minute, "the replica lacks records", func() (bool, string) {
				lost = s.appliedIn(primary) - held
				return lost > 0, fmt.Sprint(lost)
			})
			t.Logf("the replica lacks %d of %d records applied", lost, held+lost)
			s.kill(primary)
			replica.Promote()
			address.Retarget(replica.Addr())
			s.awaitRewind(before)
		}},
	)
	s.finish(api, events)
}
