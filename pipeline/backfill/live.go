package backfill

import (
	"context"
	"sync"
	"time"
)

const (
	// liveMutations bounds the mutations of a batch beside live events, and so the time for which the store and a core are
	// busy with it: a few milliseconds, in one short script call for each shard. A live batch may have to wait that long.
	liveMutations = 1000
	// longestWait is how long a batch waits for live ones, about as long as these wait for their events. There are
	// always some under way in a process that has many workers, or is catching up: then fills continue slowly.
	longestWait = 20 * time.Millisecond
	// calm is how long after the last live batch a fill's batches are full again. The next live batch may have to wait for
	// one of them, so the time is long enough that events which come every few seconds do not.
	calm = 10 * time.Second
)

// Live counts the batches of live events that are under way in a process, so that fills give way to them. The zero Live
// is for a process without live events. It is safe for concurrent use.
type Live struct {
	mu    sync.Mutex
	under int           // batches under way
	ended time.Time     // when the last one ended; before the first one, when the process began
	quiet chan struct{} // see Quiet
}

// NewLive returns a Live for a process that begins now: the first batches may be about to come.
func NewLive() *Live { return &Live{ended: time.Now()} }

// Begin counts a batch. Its first event is mapped.
func (l *Live) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under == 0 {
		l.quiet = make(chan struct{})
	}
	l.under++
}

// End says that a batch is no longer under way.
func (l *Live) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under--; l.under == 0 {
		l.ended = time.Now()
		close(l.quiet)
	}
}

// Quiet returns a channel that is closed once no batch is under way.
func (l *Live) Quiet() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quiet == nil { // there was no batch yet
		l.quiet = make(chan struct{})
		close(l.quiet)
	}
	return l.quiet
}

// lately reports whether a batch is under way, or less than calm has passed since the last one, or since the process
// began.
func (l *Live) lately() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.under > 0 || time.Since(l.ended) < calm
}

// giveWay waits while batches are under way, but not longer than longestWait.
func (l *Live) giveWay(ctx context.Context) {
	wait, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	select {
	case <-l.Quiet():
	case <-wait.Done():
	}
}
