// Package embedded runs a Kafka broker and a Redis server inside the process,
// for `weir demo` and for fast tests that need nothing installed.
//
// They are stand-ins: kfake and miniredis answer the calls that Weir makes, but keep their data in
// memory. Weir's guarantees are tested on real servers.
package embedded

import (
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/twmb/franz-go/pkg/kfake"
)

// Kafka starts a broker on 127.0.0.1 with the given numbers of partitions by topic. It does not
// create other topics by itself. The caller closes it.
func Kafka(topics map[string]int) (*kfake.Cluster, error) {
	opts := []kfake.Opt{kfake.NumBrokers(1)}
	for topic, partitions := range topics {
		opts = append(opts, kfake.SeedTopics(int32(partitions), topic))
	}
	return kfake.NewCluster(opts...)
}

// Redis starts a server on 127.0.0.1. Keys expire only when its FastForward advances the time: to
// follow the clock, miniredis would scan all keys at every command. The caller closes it.
func Redis() (*miniredis.Miniredis, error) {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	m.Server().SetPreHook(withoutInfo)
	return m, nil
}

// withoutInfo refuses the sections of INFO that miniredis takes from its server, which it no longer has while it is being closed: it
// panics then. Of all sections together it gives an empty text.
func withoutInfo(c *server.Peer, command string, sections ...string) bool {
	switch {
	case command != "INFO":
		return false
	case len(sections) == 0:
		c.WriteBulk("")
	default:
		c.WriteError(fmt.Sprintf("section (%s) is not supported", strings.Join(sections, " ")))
	}
	return true
}
