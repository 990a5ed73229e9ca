package fetch

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-stream/weir/state"
)

// The age of an open transaction restarts when the last stable offset moves, and ends when nothing
// is after it.
func TestLagBehindOpenTransactions(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	ends := unknownEnds
	for _, step := range []struct {
		seconds             int
		highWatermark, last int64
		isolation           Isolation
		want                Lag // of position 10, a second later
	}{
		{0, 10, 10, ReadCommitted, Lag{}},
		{1, 14, 10, ReadCommitted, Lag{4, 4, time.Second}},
		{5, 20, 10, ReadCommitted, Lag{10, 10, 5 * time.Second}},
		{7, 20, 16, ReadCommitted, Lag{10, 4, time.Second}}, // the oldest has ended, another is open
		{9, 25, 16, ReadCommitted, Lag{15, 9, 3 * time.Second}},
		{11, 25, 25, ReadCommitted, Lag{15, 0, 0}},
		{13, 29, 25, ReadCommitted, Lag{19, 4, time.Second}},
		{15, 29, -1, ReadUncommitted, Lag{19, 0, 0}},
		{17, 25, 29, ReadCommitted, Lag{15, 0, 0}}, // a newly elected follower: never less than 0
	} {
		ends.move(step.isolation, step.highWatermark, step.last, at(step.seconds))
		if got := ends.lag(10, at(step.seconds+1)); got != step.want {
			t.Errorf("after %d s: %+v, want %+v", step.seconds, got, step.want)
		}
	}
}

// What was fetched counts as left until Poll returns it, what was fetched in vain and what is behind an open transaction
// does not.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPacedBroker(t)
		b.limit, b.open = 2, 3
		p := NewPoller(PollerConfig{Transport: b, MaxWaiting: 2})
		defer p.Close()
		id := state.Partition{Topic: "t"}
		expect := func(when string, want map[state.Partition]int64) {
			t.Helper()
			synctest.Wait()
			if got := p.Left(); !maps.Equal(got, want) {
				t.Errorf("%s: %v are left, want %v", when, got, want)
			}
		}
		p.Add("t", 0, 0)
		expect("before an answer", map[state.Partition]int64{})
		b.grow(0, 7)
		expect("after two answers", map[state.Partition]int64{id: 7})
		if _, err := p.Poll(context.Background()); err != nil {
			t.Fatal(err)
		}
		expect("after one was taken", map[state.Partition]int64{id: 5})
		p.Seek("t", 0, 6)
		expect("after a seek", map[state.Partition]int64{id: 1})
		p.mu.Lock()
		p.positions[id].stopped = true
		p.mu.Unlock()
		expect("once stopped", map[state.Partition]int64{})
		p.Remove("t", 0)
		expect("once removed", map[state.Partition]int64{})
	})
}
