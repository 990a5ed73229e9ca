package kafkatest

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/weir-stream/weir/internal/embedded"
)

// Embedded starts a Kafka broker inside the test's process, with the given numbers of partitions by
// topic.
func Embedded(t testing.TB, topics map[string]int) *kfake.Cluster {
	t.Helper()
	c, err := embedded.Kafka(topics)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
