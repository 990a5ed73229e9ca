package testkit

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/weir-stream/weir/internal/embedded"
)

// Kfake starts a Kafka broker inside the test's process, with topics and
// their numbers of partitions.
func Kfake(t testing.TB, topics map[string]int) *kfake.Cluster {
	t.Helper()
	c, err := embedded.Kafka(topics)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Miniredis starts a Redis server inside the test's process.
func Miniredis(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	m, err := embedded.Redis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}
