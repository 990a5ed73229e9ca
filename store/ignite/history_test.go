package ignite

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
)

// When a node is lost, its partitions may begin again: what the history said of their state holds no longer.
func TestHistoryIsSupersededWhenNodesLeave(t *testing.T) {
	c := ignitetest.NewWith(t, &ignitetest.Options{Nodes: 2})
	s := New(Config{Client: client(t, c), Namespace: testkit.Namespace(t), Shards: 2, Slack: time.Hour})
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.History(t.Context()); err != nil { // connects to the nodes
		t.Fatal(err)
	}
	before, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clock(t.Context()); err != nil || !before.Current() {
		t.Fatalf("error %v, or the history is superseded although nothing happened", err)
	}
	if err := c.Nodes[1].Kill(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "the other node answers for both", func() (bool, string) {
		_, err := s.Clock(t.Context())
		return err == nil && !before.Current(), fmt.Sprint(err, before.Current())
	})
}
