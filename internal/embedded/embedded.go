// Package embedded runs a Kafka broker and a Redis server inside the process,
// for `weir demo` and for fast tests, where nothing is installed.
//
// They are stand-ins: kfake and miniredis answer the calls that Weir makes,
// but keep their data in memory. What Weir promises is tested on real servers.
package embedded

import (
	"github.com/alicebob/miniredis/v2"
	"github.com/twmb/franz-go/pkg/kfake"
)

// Kafka starts a broker on 127.0.0.1 with topics and their numbers of
// partitions. Other topics do not exist until they are created. Close it.
func Kafka(topics map[string]int) (*kfake.Cluster, error) {
	opts := []kfake.Opt{kfake.NumBrokers(1)}
	for topic, partitions := range topics {
		opts = append(opts, kfake.SeedTopics(int32(partitions), topic))
	}
	return kfake.NewCluster(opts...)
}

// Redis starts a server on 127.0.0.1. Keys expire only as its FastForward lets
// time pass: following the clock, miniredis would walk through all keys at every
// command. Close it.
func Redis() (*miniredis.Miniredis, error) {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	return m, nil
}
