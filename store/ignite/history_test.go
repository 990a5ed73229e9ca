package ignite

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/state"
)

// When a node is lost, its partitions may begin again: what the history said of their state holds no longer.
func TestHistoryIsSupersededWhenNodesLeave(t *testing.T) {
	c := ignitetest.NewWith(t, &ignitetest.Options{Nodes: 2})
	s := New(Config{Client: client(t, c), Namespace: testkit.Namespace(t), Shards: 2, Slack: time.Hour})
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	var before *state.History
	testkit.Eventually(t, time.Minute, "the nodes have told of all changes", func() (bool, string) {
		var err error
		if before, err = s.History(t.Context()); err != nil {
			return false, err.Error()
		}
		_, err = s.Clock(t.Context())
		return err == nil && before.Current(), fmt.Sprint("the history is superseded; error ", err)
	})
	if err := c.Nodes[1].Kill(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "the other node answers for both", func() (bool, string) {
		_, err := s.Clock(t.Context())
		return err == nil && !before.Current(), fmt.Sprint(err, before.Current())
	})
}
