package ignite

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/ignite/thin"
)

const day = int64(24 * time.Hour / time.Millisecond)

var (
	events = &state.Series{ID: "count", Group: "devic", By: []string{"device"}, Measure: state.CountEvents, Tile: day, Keep: 8 * day, GroupKeep: 9 * day}
	topic  = state.Partition{Topic: "transactions"}
)

const (
	records = 400
	devices = 100
)

// log applies a partition to a store: four events of each device.
type log struct {
	*testing.T
	s     *Store
	share state.PartitionRange
}

func newLog(t *testing.T, c Config) *log {
	l := &log{T: t, s: New(c)}
	if err := l.s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	plan := &state.Plan{Version: "v1", Retained: map[string]state.Retention{events.ID + ".x": {Keep: events.Keep}}}
	if _, err := l.s.Register(t.Context(), state.Registration{Plan: plan}); err != nil {
		t.Fatal(err)
	}
	l.share.Partition = topic.WithPlan(plan.Version)
	return l
}

// applyAll applies all records, as often as it takes.
func (l *log) applyAll() {
	l.Helper()
	testkit.Eventually(l, 2*time.Minute, "all is applied", func() (bool, string) {
		err := l.apply()
		return err == nil, fmt.Sprint(err)
	})
}

func (l *log) apply() error {
	l.Helper()
	progress, err := l.s.Progress(l.Context(), []state.Partition{topic})
	if err != nil {
		return err
	}
	if state.Lowest(progress[0]) < 0 {
		if _, err := l.s.Place(l.Context(), testkit.FirstPlacement(l.share.Partition, l.s.Shards(), 0)); err != nil {
			return err
		}
		return errors.New("the shards have begun")
	}
	l.share.Progress, l.share.Lagging = progress[0], make([]bool, l.s.Shards())
	b := &state.Batch{Now: 100 * day, Ranges: []state.PartitionRange{l.share}, EveryShard: true, Series: []*state.Series{events}}
	b.Ranges[0].To = records
	for offset := range int64(records) {
		b.Update(0, offset, fmt.Appendf(nil, "device%d", offset%devices))
		b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
	}
	if err := l.s.NewWriter().Apply(l.Context(), b); err != nil {
		return err
	}
	if r := b.Ranges[0]; r.Behind || slices.Contains(r.Lagging, true) {
		return fmt.Errorf("behind: %v, lagging: %v", r.Behind, r.Lagging)
	}
	return nil
}

// count returns how many devices are complete, and how many cannot be read.
func count(t *testing.T, s *Store) (complete, unread int, err error) {
	var reads []state.Read
	for d := range devices {
		reads = append(reads, state.Read{Series: events, Entity: fmt.Sprint("device", d), First: 100, Last: 100})
	}
	found, err := s.Read(t.Context(), reads)
	for i := range found {
		switch {
		case errors.Is(found[i].Err, state.ErrUnavailable):
			unread++
		case found[i].Err == nil && len(found[i].Buckets) == 1 && found[i].Buckets[0].Value.Num == records/devices:
			complete++
		}
	}
	return complete, unread, err
}

// expectSome waits until a node answers, and checks that some devices are complete and the others cannot be read.
func expectSome(t *testing.T, s *Store) {
	t.Helper()
	testkit.Eventually(t, time.Minute, "a node answers", func() (bool, string) {
		complete, unread, err := count(t, s)
		if err == nil && complete+unread != devices {
			t.Fatalf("%d devices are complete, %d cannot be read, and others are as if they had no events", complete, unread)
		}
		return err == nil && complete > 0 && unread > 0, fmt.Sprintf("%d are complete, %d cannot be read, error %v", complete, unread, err)
	})
}

// When the nodes with all copies of some partitions die, and one that may have a part of them is left, what was there cannot be read
// until a process that writes has begun again with everything.
func TestLostPartitions(t *testing.T) {
	c := ignitetest.New(t, 3)
	config := Config{Client: client(t, c), Namespace: testkit.Namespace(t), Shards: 64, Slack: time.Hour, Backups: 1}
	l := newLog(t, config)
	l.applyAll()
	config.Client = client(t, c)
	answers := New(config)
	if complete, _, err := count(t, answers); complete != devices { // from here on it knows the namespace
		t.Fatalf("%d devices are complete, error %v", complete, err)
	}
	for _, n := range c.Nodes[1:] {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	expectSome(t, answers)
	l.applyAll()
	if complete, unread, err := count(t, answers); complete != devices || err != nil {
		t.Errorf("%d devices are complete, %d cannot be read, error %v; want %d complete", complete, unread, err, devices)
	}
}

// What a node that is away has on its disk is waited for: the other nodes keep what they have, and nothing begins again.
func TestLostPartitionsOnDisk(t *testing.T) {
	c := ignitetest.NewWith(t, &ignitetest.Options{Nodes: 2, Persistent: true})
	if err := c.Activate(); err != nil {
		t.Fatal(err)
	}
	login := thin.Login{User: ignitetest.User, Password: ignitetest.Password, Timeout: 10 * time.Second}
	client := thin.New(thin.Config{Addresses: c.Addresses(), Login: login, Request: 20 * time.Second})
	t.Cleanup(func() { _ = client.Close() })
	l := newLog(t, Config{Client: client, Namespace: testkit.Namespace(t), Shards: 64, Slack: time.Hour})
	l.applyAll()
	if err := c.Nodes[1].Kill(); err != nil {
		t.Fatal(err)
	}
	expectSome(t, l.s)
	if err := l.apply(); err == nil {
		t.Error("records are applied that begin again with a part of the state")
	}
	expectSome(t, l.s)
}
