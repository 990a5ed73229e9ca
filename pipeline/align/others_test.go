package align

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// cluster is brokers and a store in one. Its topic t has partitions, each with the timestamps of its records.
type cluster struct {
	records map[int32][]int64
	applied map[int32]int64 // offsets
	start   map[int32]int64
	stable  map[int32]int64 // of partitions with an open transaction
	moved   bool            // the leaders are others than listed
	err     error

	mu    sync.Mutex // guards applied and what follows
	looks int
	takes time.Duration // of a look
}

func (c *cluster) Logs(_ context.Context, partitions []state.Partition) (logs []fetch.Log, err error) {
	for _, p := range partitions {
		end := int64(len(c.records[p.ID]))
		l := fetch.Log{Partitions: len(c.records), Start: c.start[p.ID], Stable: end, End: end}
		if stable, open := c.stable[p.ID]; open {
			l.Stable = stable
		}
		if len(c.records) == 0 {
			l.Err = errors.New("unknown topic")
		}
		logs = append(logs, l)
	}
	return logs, c.err
}

func (c *cluster) Since(_ context.Context, partitions []state.Partition, logs []fetch.Log, moment int64) (found []fetch.Dated) {
	c.mu.Lock()
	takes := c.takes
	c.looks++
	c.mu.Unlock()
	time.Sleep(takes)
	for i := range logs {
		p := partitions[i]
		list := c.records[p.ID]
		if at := slices.IndexFunc(list, func(t int64) bool { return t >= moment }); at >= 0 {
			found = append(found, fetch.Dated{Offset: int64(at), Timestamp: list[at]})
		} else {
			found = append(found, fetch.Dated{Offset: -1})
		}
		if len(list) == 0 || c.moved {
			logs[i].Err = errors.New("unknown")
		}
	}
	return found
}

func (c *cluster) Progress(_ context.Context, partitions []state.Partition) (all [][]state.Position, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range partitions {
		at := state.NoPosition
		if offset, found := c.applied[p.ID]; found {
			at = state.Position{Offset: offset}
		}
		all = append(all, []state.Position{state.NoPosition, at})
	}
	return all, c.err
}

// Partitions of other processes are as far as what is applied of them.
func TestOthers(t *testing.T) {
	const hour = int64(3_600_000)
	c := &cluster{
		records: map[int32][]int64{0: {1000}, 1: {1000, 2000, 9 * hour}, 2: {500, 600, 3000}, 3: {500}},
		applied: map[int32]int64{}, start: map[int32]int64{},
	}
	a := newAligned(t, 1)
	a.others = state.MinTime
	o := Others{Alignment: a.Alignment, Topics: []string{"t"}, Brokers: c, Store: c}
	look := func(what string, want int64) {
		t.Helper()
		o.Look(t.Context())
		a.expect(what, want)
	}
	known := c.records
	c.records = nil
	a.report(0, Report{At: 1, Waits: true})
	look("the topic is not known yet", state.MinTime)
	c.records = known
	a.report(0, Report{At: state.MinTime})
	look("nothing is known of the own one", state.MinTime)
	a.report(0, Report{At: 2000, Waits: true})
	look("nothing is applied", state.MinTime)
	c.applied = map[int32]int64{1: 1, 2: 2}
	look("one has not begun", state.MinTime)
	c.applied[3] = 1 // at its end, which is before
	look("all are there", 2000+apart)
	a.report(0, Report{At: 5 * hour, Waits: true})
	a.expect("not looked again", 2000+apart)
	look("one is not there", 2000+apart)
	c.applied[1] = 2
	look("another one is not there", 2000+apart)
	c.start[2] = 3 // its log was cut off
	look("there is nothing until long after", 5*hour+apart)
	a.report(0, Report{At: 8 * hour, Waits: true})
	a.expect("so they need not be looked at", 8*hour+apart)

	a.report(0, Report{At: 10 * hour, Waits: true})
	c.err = errors.New("away")
	look("the brokers are away", 9*hour+apart)
	c.err = nil
	a.clock = a.clock.Add(patience - 1)
	look("one is at the record before", 9*hour+apart)
	a.clock = a.clock.Add(patience)
	look("it gets no further", 10*hour+apart)
	c.records = map[int32][]int64{0: c.records[0]}
	look("there are no others", 10*hour+apart)
	a.report(0, Report{At: 20 * hour, Waits: true})
	a.expect("nor will there be", 20*hour+apart)
}

// Others that are at the present are not waited for, though they never have all that is in their logs; a record may be of the future.
func TestOthersOfThePresent(t *testing.T) {
	now := began.UnixMilli()
	c := &cluster{
		records: map[int32][]int64{0: {now}, 1: {now - apart - 1, now - apart, now - 2000, now - 1000}},
		applied: map[int32]int64{1: 0}, start: map[int32]int64{},
	}
	a := newAligned(t, 1)
	a.others = state.MinTime
	o := Others{Alignment: a.Alignment, Topics: []string{"t"}, Brokers: c, Store: c}
	a.report(0, Report{At: now + 48*apart, Waits: true})
	o.Look(t.Context())
	a.expect("just before the present", state.MinTime)
	c.applied[1] = 1
	o.Look(t.Context())
	a.expect("the present", now+49*apart)
}

// What is listed is used until it may not be so any more.
func TestListOfOthers(t *testing.T) {
	c := &cluster{
		records: map[int32][]int64{0: {1000}, 1: {1000}, 2: {1000, 1500}}, stable: map[int32]int64{2: 1},
		applied: map[int32]int64{2: 1}, start: map[int32]int64{},
	}
	a := newAligned(t, 2)
	a.others = state.MinTime
	o := Others{Alignment: a.Alignment, Topics: []string{"t"}, Brokers: c, Store: c}
	look := func(at int64, before, what string, want int64) {
		t.Helper()
		a.report(0, Report{At: at, Waits: true})
		if before != "" {
			a.expect(before, want)
		}
		o.Look(t.Context())
		a.expect(what, want)
	}
	a.report(1, Report{CaughtUp: true})
	look(2000, "", "what is left is of an open transaction", 2000+apart)
	c.stable = nil
	look(3000, "", "it has ended", 3000+apart)
	look(4000, "not looked again", "it is not applied", 3000+apart)

	c.applied[2] = 2
	c.records[2] = append(c.records[2], 9000)
	c.moved = true
	look(5000, "not looked again", "the leaders are others", 3000+apart)
	c.moved = false
	look(8000, "", "they are known", 8000+apart)

	c.records[3] = []int64{1000, 9000}
	look(8001, "", "a partition was added", 8001+apart)
	a.clock = a.clock.Add(lookInterval)
	look(8002, "", "it is listed", 8002+apart)
	look(8003, "not looked again", "it is not there", 8002+apart)
	c.applied[3] = 1
	look(8004, "", "it is", 8004+apart)
	a.Leave([]state.Partition{{Topic: "t", ID: 1}})
	look(8005, "another process has it", "it is not there", state.MinTime)
}

// Partitions that this process was assigned meanwhile are no others.
func TestOthersBecomeOwn(t *testing.T) {
	c := &cluster{records: map[int32][]int64{0: {1000}, 1: {1000}}, applied: map[int32]int64{1: 1}, start: map[int32]int64{}}
	a := newAligned(t, 1)
	a.others = state.MinTime
	o := Others{Alignment: a.Alignment, Topics: []string{"t"}, Brokers: c, Store: c}
	a.report(0, Report{At: 2000, Waits: true})
	o.Look(t.Context())
	a.expect("the other one is at its end", 2000+apart)
	a.Join([]state.Partition{{Topic: "t", ID: 1}})
	a.report(0, Report{At: 3000, Waits: true})
	a.report(1, Report{At: 3000, Waits: true})
	o.Look(t.Context())
	a.expect("there are no others", 3000+apart)
}

// A topic that stays unknown was deleted, and is not waited for.
func TestDeletedTopic(t *testing.T) {
	a := newAligned(t, 1)
	a.others = state.MinTime
	o := Others{Alignment: a.Alignment, Topics: []string{"t"}, Brokers: &cluster{}, Store: &cluster{}}
	a.report(0, Report{At: 1000, Waits: true})
	o.Look(t.Context())
	a.clock = a.clock.Add(patience - 1)
	o.Look(t.Context())
	a.expect("it may just have been created", state.MinTime)
	a.clock = a.clock.Add(1)
	o.Look(t.Context())
	a.expect("it was not", 1000+apart)
}

// Others are looked at as soon as the own partitions are ahead of them, while these have not caught up.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{records: map[int32][]int64{0: {1000}, 1: {1000, 2000}}, applied: map[int32]int64{1: 1}}
		a := newAligned(t, 1)
		a.others = state.MinTime
		a.report(0, Report{At: 1500, Waits: true})
		o := Others{Alignment: a.Alignment, Topics: []string{"t"}, Brokers: c, Store: c}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { o.Follow(ctx); close(ended) }()
		synctest.Wait()
		a.expect("at once", 1500+apart)
		time.Sleep(lookInterval / 2)
		synctest.Wait()
		looked := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.looks
		}
		before := looked()
		a.report(0, Report{At: 2500, Waits: true})
		synctest.Wait()
		if n := looked() - before; n != 1 {
			t.Errorf("looked %d times when the own partition was ahead, want once", n)
		}
		const takes = 10 * lookPause
		slow := func(d time.Duration) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.takes = d
		}
		time.Sleep(lookInterval / 2)
		slow(takes)
		a.report(0, Report{At: 2600, Waits: true})
		time.Sleep(2 * takes)
		synctest.Wait()
		before = looked()
		a.report(0, Report{At: 2700, Waits: true})
		time.Sleep(takes / 2)
		synctest.Wait()
		if looked() != before {
			t.Error("looked again soon, though a look takes long")
		}
		slow(0)
		c.mu.Lock()
		c.applied[1] = 2
		c.mu.Unlock()
		time.Sleep(lookInterval)
		synctest.Wait()
		a.expect("later", 2700+apart)
		a.report(0, Report{At: 2700, CaughtUp: true})
		time.Sleep(lookInterval)
		synctest.Wait()
		before = looked()
		time.Sleep(2 * lookInterval)
		synctest.Wait()
		a.expect("caught up", math.MaxInt64)
		if looked() != before {
			t.Error("looked at others, though the own partition has caught up")
		}
		cancel()
		<-ended
	})
}
