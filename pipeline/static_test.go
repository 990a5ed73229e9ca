package pipeline_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
)

// A processor with an instance ID that restarts continues with its partitions, and the other processor does not notice.
func TestStaticProcessorStartsAgain(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	b, topic := newKafkaBench(t, broker, 2)
	b.config.SessionTimeout, b.config.HeartbeatInterval = 20*time.Second, 100*time.Millisecond
	lines := newLogLines(t)
	b.config.GroupInstanceID, b.config.Logger = "one", slog.New(slog.NewTextHandler(lines, nil))
	b.run()
	one := b.processor
	b.config.GroupInstanceID, b.config.Logger = "two", nil
	b.run()
	testkit.Eventually(t, time.Minute, "each has a partition", func() (bool, string) {
		a, c := one.Stats().Assigned, b.processor.Stats().Assigned
		return a == 1 && c == 1, fmt.Sprint(a, " and ", c)
	})
	produce(t, producer(t, broker), topic, payments(0, 30)...)
	b.expect(30)
	generations := lines.count("partitions assigned")
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	b.run()
	testkit.Eventually(t, time.Minute, "it has its partition again", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		return b.processor.Stats().Assigned == 1 && err == nil, fmt.Sprint(err)
	})
	produce(t, producer(t, broker), topic, payments(30, 60)...)
	b.expect(60)
	if n := lines.count("partitions assigned"); n != generations {
		t.Errorf("the other processor was assigned partitions %d more times, want none", n-generations)
	}
}
