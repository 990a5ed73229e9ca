package storetest

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// expiring is a device whose events are written at moments of the clock.
type expiring struct {
	*testing.T
	s      Timed
	offset int64
	passed time.Duration
}

// keeping returns the series of events under a plan that keeps its group for a time, 0 for ever.
func keeping(keep time.Duration) *state.Series {
	s := *events
	s.GroupKeep = keep.Milliseconds()
	return &s
}

// write writes an event under a plan, by a process that has written nothing before.
func (e *expiring) write(keep time.Duration) {
	e.Helper()
	s, series := e.s.Another(), keeping(keep)
	progress, err := s.Progress(e.Context(), []state.Partition{transactions})
	if err != nil {
		e.Fatal(err)
	}
	b := &state.Batch{
		Ranges: []state.PartitionRange{{Partition: transactions, To: e.offset + 1, Epoch: -1, Progress: progress[0]}}, EveryShard: true,
		Series: []*state.Series{series}, Now: time.Now().Add(e.passed).UnixMilli(),
	}
	b.Update(0, e.offset, []byte("d"))
	b.Add(state.Mutation{Series: series, Tile: 100, Num: 1})
	e.offset++
	if err := s.NewWriter().Apply(e.Context(), b); err != nil || b.Ranges[0].Behind {
		e.Fatalf("behind %v, error %v; want the event applied", b.Ranges[0].Behind, err)
	}
}

func (e *expiring) pass(d time.Duration) {
	e.passed += d
	e.s.Pass(d)
}

// count returns how many events the device has.
func (e *expiring) count() (n int64) {
	e.Helper()
	found, err := e.s.Read(e.Context(), []state.Read{{Series: events, Entity: "d", First: 100, Last: 100}})
	if err != nil {
		e.Fatal(err)
	}
	for _, b := range found[0].Buckets {
		n += b.Value.Num
	}
	return n
}

func (e *expiring) expect(what string, want int64) {
	e.Helper()
	if n := e.count(); n != want {
		e.Errorf("%s: %d events, want %d", what, n, want)
	}
}

// testExpiry checks that state lives for as long as any plan that wrote it keeps its group, and the slack of the history,
// and not much longer.
func testExpiry(t *testing.T, open func(shards int) Timed) {
	const day, forever = 24 * time.Hour, 0
	begin := func(t *testing.T) *expiring {
		e := &expiring{T: t, s: open(2)}
		applyingStore(t, e.s)
		return e
	}
	t.Run("no sooner and no later", func(t *testing.T) {
		e := begin(t)
		h, err := e.s.History(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const keep = 2 * time.Hour
		e.write(keep)
		e.pass(keep + time.Duration(h.Slack)*time.Millisecond - time.Minute)
		e.expect("while it is kept", 1)
		e.pass(keep)
		e.expect("later", 0)
		e.write(keep)
		e.expect("written again", 1)
	})
	t.Run("a write renews", func(t *testing.T) {
		e := begin(t)
		for n := range int64(4) {
			e.write(8 * day)
			e.pass(6 * day)
			e.expect("since the last one", n+1)
		}
	})
	t.Run("plans that keep it for different times", func(t *testing.T) {
		for name, keeps := range map[string][]time.Duration{
			"shorter": {30 * day, day}, "longer": {day, 30 * day}, "both": {day, 30 * day, day},
		} {
			e := begin(t)
			for _, keep := range keeps {
				e.write(keep)
			}
			e.pass(30 * day)
			e.expect(name, int64(len(keeps)))
		}
	})
	t.Run("forever", func(t *testing.T) {
		e := begin(t)
		e.write(8 * day)
		e.write(forever)
		e.pass(1000 * day)
		e.expect("after years", 2)
		e.write(8 * day) // by another plan
		e.pass(1000 * day)
		e.expect("though another plan keeps it for less", 3)
	})
	t.Run("as the history says", func(t *testing.T) {
		e, keep := begin(t), 8*day
		const lag = 3 * day
		e.passed = -lag // the record is that old
		e.write(keep)
		e.passed = 0
		written := time.Now()
		h, err := e.s.History(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		timestamp, there, gone := written.Add(-lag).UnixMilli(), 0, 0
		for range 14 {
			now := time.Now().Add(e.passed).UnixMilli()
			switch n := e.count(); {
			case timestamp < h.Remaining(now).Since(&state.Series{Keep: keep.Milliseconds(), Tile: 1}):
				gone++ // it may have expired
			case n != 1:
				t.Errorf("after %v: %d events; want the one that cannot have expired by the history", e.passed, n)
			default:
				there++
			}
			e.pass(day)
		}
		if there < 8 || gone < 4 {
			t.Errorf("the history called the event there %d times, and possibly gone %d times", there, gone)
		}
	})
}
