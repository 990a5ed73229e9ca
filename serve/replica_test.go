package serve

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// replicaOf answers in place of a reader, with the next of some freshnesses each time.
type replicaOf struct {
	*fakeReader
	fresh []state.Freshness
	asked int
}

func (r *replicaOf) read(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	f := r.fresh[r.asked]
	r.asked++
	states, err := r.ReadOverlay(ctx, reads, pending)
	return states, f, err
}

func TestAnswersFromReplicas(t *testing.T) {
	const (
		ask    = `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}]`
		master = `,"read_from":"master",`
	)
	stale := func(d time.Duration) state.Freshness { return state.Freshness{Replica: true, Staleness: d} }
	for _, test := range []struct {
		name, method, target, body string
		fresh                      state.Freshness
		asked                      int
		want                       string
	}{
		{"from a replica", "POST", queryPath, ask + `}`, stale(12 * time.Millisecond), 1, `,"read_from":"replica","staleness_ms":12,"results":[`},
		{"a bound is rounded up", "POST", queryPath, ask + `}`, stale(12*time.Millisecond + 1), 1, `"staleness_ms":13,`},
		{"where no replica did", "POST", queryPath, ask + `}`, state.Freshness{}, 1, master + `"results":[`},
		{"of one feature", "GET", "/v1/features/device_tx_7d?device_id=d1", "", stale(time.Second), 1, `,"read_from":"replica","staleness_ms":1000,"results":[`},
		{"a timeline", "GET", "/v1/timeline/device_tx_7d?device_id=d1", "", stale(time.Second), 1, `,"read_from":"replica","staleness_ms":1000,"points":[`},
		{
			"in Feast's format", "POST", feastPath, `{"features": ["device_tx_7d"], "entities": {"device_id": ["d1"]}}`, stale(12 * time.Millisecond), 1,
			`{"metadata":{"feature_names":["device_id","device_tx_7d"],"read_from":"replica","staleness_ms":12},"results":[`,
		},
		{
			"waiting is for the master", "POST", queryPath, ask + `, "wait_for": {"topic": "transactions", "partition": 0, "offset": 1}}`, stale(time.Second), 0,
			`,"waited":{"applied":true}` + master,
		},
		{"what is not kept is not read", "POST", queryPath, `{"features": ["device_users_7d"], "entities": [{"device_id": "d1"}], "at": 1530000000000}`, stale(time.Second), 0, master},
	} {
		t.Run(test.name, func(t *testing.T) {
			reader := &fakeReader{states: stored()}
			replica := &replicaOf{reader, []state.Freshness{test.fresh}, 0}
			h := newHandler(reader, func(c *setup) {
				c.Replicas = replica.read
				c.Applied = func(context.Context, state.Partition, int64, []state.Read) (bool, error) { return true, nil }
			})
			w := do(t, h, test.method, test.target, test.body)
			if w.Code != 200 || !strings.Contains(w.Body.String(), test.want) || replica.asked != test.asked {
				t.Errorf("got %d %s after %d reads of replicas\nwant %s after %d", w.Code, w.Body, replica.asked, test.want, test.asked)
			}
		})
	}
}

// Pending events are added to the state that a replica returns.
func TestPendingEventsAtReplicas(t *testing.T) {
	r := defined.Registry(t, memberDefinitions)
	reader := &fakeReader{read: func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		return make([]state.WindowState, len(reads)), nil
	}}
	replica := &replicaOf{reader, []state.Freshness{{Replica: true, Staleness: time.Second}}, 0}
	h := newHandler(reader, func(c *setup) {
		c.Registry, c.Replicas = func() *features.Registry { return r }, replica.read
	})
	w := do(t, h, "POST", queryPath, `{"features": ["views"], "entities": [{"user": "u1"}],
		"pending": {"stream": "view", "event": {"time": 1532520000000, "user": "u1"}}}`)
	if !strings.Contains(w.Body.String(), `}],"read_from":"replica","staleness_ms":1000,`) || reader.pending == nil || len(reader.pending.Updates) == 0 {
		t.Errorf("got %d %s with %+v pending, want an answer of the replica with the pending event", w.Code, w.Body, reader.pending)
	}
}

// With two round trips the staler one counts, and it is reported if either went to a replica.
func TestStalenessOfMultiHopFeatures(t *testing.T) {
	r := defined.Registry(t, memberDefinitions)
	reader := &fakeReader{read: func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		states := make([]state.WindowState, len(reads))
		states[0].Members = []string{"u1"}
		return states, nil
	}}
	replica := &replicaOf{reader, []state.Freshness{{Replica: true, Staleness: time.Second}, {}}, 0}
	h := newHandler(reader, func(c *setup) {
		c.Registry, c.Replicas = func() *features.Registry { return r }, replica.read
	})
	w := do(t, h, "POST", queryPath, `{"features": ["fellow_pages"], "entities": [{"page": "p1"}]}`)
	if !strings.Contains(w.Body.String(), `"read_from":"replica","staleness_ms":1000,`) || replica.asked != 2 {
		t.Errorf("got %d %s after %d reads of the replica, want 2", w.Code, w.Body, replica.asked)
	}
}

func TestNeitherReplicaNorMaster(t *testing.T) {
	reader := &fakeReader{err: errors.New("down")}
	h := newHandler(reader, func(c *setup) { c.Replicas = (&replicaOf{reader, make([]state.Freshness, 1), 0}).read })
	w := do(t, h, "POST", queryPath, `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}]}`)
	want := `{"error":{"code":"store_unavailable","message":"the store cannot be read; the server's log has the details"}}` + "\n"
	if w.Code != 503 || w.Body.String() != want {
		t.Errorf("got %d %s\nwant 503 %s", w.Code, w.Body, want)
	}
}
