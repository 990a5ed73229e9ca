package align

import (
	"math"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

const (
	apart    = int64(5 * 60_000) // MaxApart, in ms
	patience = 10 * time.Second
)

var began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// aligned is an alignment by a clock of its own.
type aligned struct {
	*Alignment
	t     *testing.T
	clock time.Time
}

// newAligned has partitions 0 to n-1 of a topic, and no others.
func newAligned(t *testing.T, n int32) *aligned {
	a := &aligned{t: t, clock: began}
	a.Alignment = New(patience, func() time.Time { return a.clock })
	for p := range n {
		a.Join([]state.Partition{{Topic: "t", ID: p}})
	}
	a.reach(0, state.MaxTime)
	return a
}

func (a *aligned) report(p int32, r Report) {
	r.Partition = state.Partition{Topic: "t", ID: p}
	a.Report([]Report{r})
}

func (a *aligned) expect(what string, want int64) {
	a.t.Helper()
	if got := a.Limit(); got != want {
		a.t.Errorf("%s: the limit is %d, want %d", what, got, want)
	}
}

// The partition that has come least far decides, while not all have caught up.
func TestLimit(t *testing.T) {
	a := newAligned(t, 2)
	grown, stop := a.Watch()
	a.expect("at the start", state.MinTime)
	a.report(0, Report{At: 5000})
	if a.expect("while one is unknown", state.MinTime); a.FirstWaits() {
		t.Error("a partition waits for one of which nothing is known")
	}
	a.report(1, Report{At: 7000, Waits: true})
	if !a.FirstWaits() || a.FirstWaits() {
		t.Error("it is not told once that a partition waits")
	}
	a.expect("both are known", 5000+apart)
	<-grown
	a.report(0, Report{At: 9000})
	a.expect("the other one is behind now", 7000+apart)
	<-grown
	a.report(0, Report{At: 6000, CaughtUp: true})
	if a.expect("one has caught up", 7000+apart); a.CaughtUp() {
		t.Error("caught up, though one is behind")
	}
	for p, must := range []bool{false, true} {
		id := state.Partition{Topic: "t", ID: int32(p)}
		if a.MustWait(id, 7000+apart) || a.MustWait(id, 7001+apart) != must {
			t.Errorf("whether records of partition %d beyond the limit, and no others, must wait is not %t", p, must)
		}
	}
	stop()
	a.report(1, Report{At: began.UnixMilli(), Waits: true})
	if a.expect("what comes next is new", began.UnixMilli()+apart); a.CaughtUp() {
		t.Error("caught up, though a partition waits")
	}
	a.report(1, Report{At: began.UnixMilli() - apart + 1})
	if a.expect("the other one has almost reached the clock", math.MaxInt64); !a.CaughtUp() {
		t.Error("not caught up")
	}
	a.report(1, Report{At: began.UnixMilli() - apart}) // the processor was cut off from the brokers
	a.expect("one is behind again, and other processes may be", state.MinTime)
	a.reach(1, state.MaxTime)
	a.expect("they are not", began.UnixMilli())
	select {
	case <-grown:
		t.Error("told after the end")
	default:
	}
}

// The others wait for a partition that gets no further for a while only, and again once it does; not for one that left.
func TestStuck(t *testing.T) {
	a := newAligned(t, 3)
	a.report(0, Report{At: 1000})
	a.report(1, Report{At: 7000, Waits: true})
	a.report(2, Report{At: 8000, Waits: true})
	a.clock = a.clock.Add(patience - 1)
	a.report(0, Report{At: 1000})
	a.expect("for a while", 1000+apart)
	a.clock = a.clock.Add(1)
	a.report(1, Report{At: 7000, Waits: true})
	a.expect("too long", 7000+apart)
	a.report(0, Report{At: 2000})
	a.expect("it reads what is not applied", 7000+apart)
	a.report(0, Report{At: 2000, Applied: 1})
	a.expect("it gets on", 2000+apart)
	a.Leave([]state.Partition{{Topic: "t", ID: 0}})
	a.expect("it leaves, and another process may have it", state.MinTime)
	a.reach(0, state.MaxTime)
	a.expect("somebody has looked before that", state.MinTime)
	a.reach(1, state.MaxTime)
	a.expect("there are no other processes", 7000+apart)
	a.report(0, Report{At: 3000}) // sent before it left
	a.expect("it has left", 7000+apart)

	a.clock = a.clock.Add(patience)
	a.report(1, Report{At: 7000})
	a.report(2, Report{At: 8000})
	a.clock = a.clock.Add(patience)
	a.report(1, Report{At: 7000})
	if a.expect("nobody gets on", 7000+apart); a.CaughtUp() {
		t.Error("caught up, though none has")
	}
	a.report(2, Report{At: 8001, Waits: true})
	a.expect("one does, and waits", 8001+apart)
}

// A partition that had to wait and then stops is not waited for, either: it does not say any more that it waits.
func TestStopsWhileItWaits(t *testing.T) {
	a := newAligned(t, 2)
	a.report(0, Report{At: 1000 + apart, Waits: true})
	a.clock = a.clock.Add(patience)
	a.report(1, Report{At: 1001 + 2*apart, Waits: true})
	a.expect("the other one goes on", 1001+3*apart)
}

// What comes to a partition that is at its end need not wait, also if all before it is old; but what it has missed
// must, once it is known.
func TestAtTheEnd(t *testing.T) {
	a := newAligned(t, 2)
	id, now := state.Partition{Topic: "t"}, began.UnixMilli()
	waits := func(what string, want bool) {
		t.Helper()
		if a.MustWait(id, now) != want {
			t.Errorf("%s: a record of the present must wait is not %t", what, want)
		}
	}
	a.report(1, Report{At: 1000, Waits: true})
	a.report(0, Report{At: 2000, Applied: 5, CaughtUp: true})
	waits("at its end", false)
	a.report(0, Report{At: 2000, Applied: 5})
	waits("something was fetched", false)
	a.report(0, Report{At: 3000, Applied: 5})
	waits("it is old", true)
	a.report(0, Report{At: 3000, Applied: 5, CaughtUp: true})
	a.report(0, Report{At: 3000, Applied: 2})
	waits("the store went back", true)
}

// Records of any timestamp are read in the end.
func TestGreatestTimestamp(t *testing.T) {
	a := newAligned(t, 1)
	a.report(0, Report{At: math.MaxInt64 - 1, Waits: true})
	a.expect("the only partition", math.MaxInt64)
}

// The newest record is the newest that was applied and is believed, until the store may have lost it.
func TestNewest(t *testing.T) {
	a := newAligned(t, 1)
	expect := func(want int64) {
		t.Helper()
		if got := a.Newest(); got != want {
			t.Errorf("the newest is %d, want %d", got, want)
		}
	}
	expect(state.MinTime)
	a.Apply(5000)
	a.Apply(3000)
	expect(5000)
	a.Apply(math.MaxInt64)
	expect(began.Add(state.MaxAhead).UnixMilli())
	a.Rewind()
	expect(state.MinTime)
	a.Apply(3000)
	expect(3000)
}

// While the store or the brokers are away, nothing is known of any partition, however long; once they are back, each has its time.
func TestUnknownForLong(t *testing.T) {
	a := newAligned(t, 2)
	a.clock = a.clock.Add(10 * patience)
	a.report(0, Report{At: 5000, Waits: true})
	a.expect("nothing was heard of the other one for long", 5000+apart)
	a.report(1, Report{At: state.MinTime})
	a.expect("it is read", state.MinTime)
	a.report(1, Report{At: 3000})
	a.expect("it is behind", 3000+apart)
}

// Without partitions nothing has caught up.
func TestNoPartitions(t *testing.T) {
	a := newAligned(t, 0)
	if a.report(0, Report{At: 1, CaughtUp: true}); a.CaughtUp() {
		t.Error("caught up")
	}
}
