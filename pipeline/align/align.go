// Package align keeps partitions close together in time while they catch up, as Flink's watermark alignment does. State is
// pruned and expires by the newest record applied, and of a log only the newest values are kept. So an event that is written with
// its features would lack state if the partitions of other topics, or other partitions of its own, were days ahead.
//
// A partition is where its first record is that is not applied. So no record is taken into a batch that is much newer than one that
// another batch still has, however much time the batches of a sparse log hold.
package align

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/state"
)

// MaxApart is how far apart partitions may be: so much may the features of an event count of other partitions that
// comes after it, and so much may events lie in the future, by default.
const MaxApart = 5 * time.Minute

// Alignment says up to which timestamp the partitions of a process may be read. It is safe for concurrent use.
type Alignment struct {
	patience time.Duration
	now      func() time.Time
	limit    atomic.Int64 // set under mu
	newest   atomic.Int64 // see Newest
	waited   atomic.Bool

	mu       sync.Mutex
	turn     int // how often what is known of other processes was dropped
	own      map[state.Partition]*place
	others   int64 // the timestamp, in ms, that the partitions of other processes have reached; state.MaxTime without any
	caughtUp bool  // all own partitions have
	watchers map[chan struct{}]bool
	ahead    chan struct{} // the own partitions are ahead of the others; capacity 1
}

// place is how far a partition has come.
type place struct {
	at       int64 // see Report
	applied  int64 // see Report
	since    time.Time
	waits    bool
	read     bool // it was reported, which only begins once the store and the brokers say where
	caughtUp bool // it is at its end, or within MaxApart of the clock
}

// New returns an alignment of no partitions. The others wait for one that gets no further for as long as patience. now is time.Now,
// except in tests.
func New(patience time.Duration, now func() time.Time) *Alignment {
	a := &Alignment{
		patience: patience, now: now, own: map[state.Partition]*place{}, others: state.MinTime,
		watchers: map[chan struct{}]bool{}, ahead: make(chan struct{}, 1),
	}
	a.limit.Store(state.MinTime)
	a.newest.Store(state.MinTime)
	return a
}

// Join adds partitions that were assigned to the process.
func (a *Alignment) Join(partitions []state.Partition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range partitions {
		a.own[p] = &place{at: state.MinTime, since: a.now()}
	}
	a.decide()
}

// Leave removes partitions.
func (a *Alignment) Leave(partitions []state.Partition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range partitions {
		delete(a.own, p)
	}
	a.forgetOthers() // which may have the partitions
	a.decide()
}

func (a *Alignment) forgetOthers() {
	a.turn++
	a.others = state.MinTime
}

// Report is where a partition is.
type Report struct {
	state.Partition
	At       int64 // the timestamp, in ms, of the first record that is not applied, or of the last one that is; state.MinTime if both are unknown
	Applied  int64 // the offset up to which it is applied
	Waits    bool  // all that was read is applied, and the next record is beyond the limit
	CaughtUp bool  // all records are applied
}

// Report takes reports of partitions.
func (a *Alignment) Report(reports []Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for _, r := range reports {
		p := a.own[r.Partition]
		if p == nil {
			continue
		}
		if p.applied != r.Applied || r.Waits || !p.read {
			p.since = now
		}
		// While it is where it had caught up, what was fetched since may be of the present.
		stays := p.caughtUp && p.at == r.At && p.applied == r.Applied
		p.caughtUp = r.CaughtUp || !r.Waits && (stays || r.At > now.Add(-MaxApart).UnixMilli())
		p.at, p.applied, p.waits, p.read = r.At, r.Applied, r.Waits, true
	}
	a.decide()
}

// CaughtUp reports whether all own partitions have caught up.
func (a *Alignment) CaughtUp() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.caughtUp
}

// MustWait reports whether a record of a partition, by its timestamp in ms, is beyond the limit. One of a partition
// that has caught up need not wait, however far others are behind.
func (a *Alignment) MustWait(p state.Partition, timestamp int64) bool {
	if timestamp <= a.limit.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own[p] == nil || !a.own[p].caughtUp
}

// Apply notes that records up to a timestamp, in ms, are about to be applied; of one that is not believed, that it is of tomorrow.
func (a *Alignment) Apply(newest int64) {
	newest = state.Believed(newest, a.now())
	for {
		if before := a.newest.Load(); newest <= before || a.newest.CompareAndSwap(before, newest) {
			return
		}
	}
}

// Rewind notes that the store may have lost what was applied.
func (a *Alignment) Rewind() { a.newest.Store(state.MinTime) }

// Newest returns the greatest timestamp, in ms, of a record that the process may have applied; state.MinTime if there is none.
func (a *Alignment) Newest() int64 { return a.newest.Load() }

// Limit returns the timestamp, in ms, up to which records may be read.
func (a *Alignment) Limit() int64 { return a.limit.Load() }

// look begins a look at other processes. It returns a number for its result, the timestamp, in ms, that the own partitions have
// reached, as far as it is known, and whether a partition is one of the process.
func (a *Alignment) look() (number int, moment int64, known bool, own func(state.Partition) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	has := make(map[state.Partition]bool, len(a.own))
	for p := range a.own {
		has[p] = true
	}
	moment = a.least()
	return a.turn, max(0, moment), moment != state.MinTime && moment != state.MaxTime, func(p state.Partition) bool { return has[p] }
}

// reach notes that the partitions of other processes have reached a timestamp, in ms, unless what was known of them was dropped since
// that was looked up.
func (a *Alignment) reach(number int, others int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if number == a.turn {
		a.others = others
		a.decide()
	}
}

// stay notes that some partitions of other processes have not reached a timestamp, in ms.
func (a *Alignment) stay(before int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.others = min(a.others, before)
	a.decide()
}

// FirstWaits reports, to one caller, that a partition waits for others, and not because it is not yet known where they are.
func (a *Alignment) FirstWaits() bool {
	return a.limit.Load() != state.MinTime && a.waited.CompareAndSwap(false, true)
}

// Watch returns a channel that receives when the limit has grown, until stop is called.
func (a *Alignment) Watch() (grown <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers[c] = true
	return c, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watchers, c)
	}
}

// least returns the timestamp, in ms, that all own partitions have reached that have not caught up; state.MaxTime if
// there are none. If any waits, it does so no longer than for its patience for one that gets no further: if none does,
// that is no reason to let others come apart.
func (a *Alignment) least() int64 {
	all, patient, waits, now := int64(state.MaxTime), int64(state.MaxTime), false, a.now()
	for _, p := range a.own {
		if p.caughtUp {
			continue
		}
		all = min(all, p.at)
		if now.Sub(p.since) < a.patience { // also while it waits: it says so again and again, unless it is stopped
			patient, waits = min(patient, p.at), waits || p.waits
		}
	}
	if waits {
		return patient
	}
	return all
}

// decide sets the limit.
func (a *Alignment) decide() {
	before := a.caughtUp
	a.caughtUp = len(a.own) > 0
	for _, p := range a.own {
		a.caughtUp = a.caughtUp && p.caughtUp
	}
	if before && !a.caughtUp {
		a.forgetOthers()
	}
	least := a.least()
	if least > a.others && !a.caughtUp {
		signal(a.ahead)
	}
	limit := int64(math.MaxInt64)
	switch least = min(least, a.others); {
	case a.caughtUp:
	case least == state.MinTime:
		limit = state.MinTime
	default:
		limit = min(least, state.MaxTime-MaxApart.Milliseconds()) + MaxApart.Milliseconds()
	}
	if limit > a.limit.Swap(limit) {
		for c := range a.watchers {
			signal(c)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
