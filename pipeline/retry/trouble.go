package retry

import (
	"errors"
	"log/slog"
	"time"

	"github.com/weir-stream/weir/store"
)

const (
	// sayAgain is how often a lasting failure is logged.
	sayAgain = 30 * time.Second
	// passes is how long a failure that usually passes by itself may last without a warning.
	passes = 3 * time.Second
)

// passing is an error of something that is usually over by itself within seconds, such as a first answer that takes long.
type passing interface {
	error
	Passing() bool
}

// Trouble logs something that fails repeatedly: when it begins, from time to time, and when it is
// over. An error with the method Passing() bool is logged once it has lasted for seconds.
type Trouble struct {
	Log  *slog.Logger
	What string // what is being done; the messages begin with it

	backoff Backoff
	clock   func() time.Time // nil for time.Now
	since   time.Time
	said    time.Time
}

func (t *Trouble) now() time.Time {
	if t.clock != nil {
		return t.clock()
	}
	return time.Now()
}

// Failed logs a failure, with optional attributes, and returns how long to wait before the next
// try.
func (t *Trouble) Failed(err error, more ...any) time.Duration {
	now := t.now()
	if t.since.IsZero() {
		t.since = now
	}
	if p, ok := errors.AsType[passing](err); ok && p.Passing() && now.Sub(t.since) < passes {
		t.Log.Debug(t.What+" waits", append(more, "error", err)...)
	} else if now.Sub(t.said) >= sayAgain {
		t.said = now
		t.Log.Warn(t.What+" fails, trying again", append(more, "error", err, "for", now.Sub(t.since).Round(time.Second))...)
		store.DebugKey(t.Log, err)
	}
	return t.backoff.Next()
}

// Over logs that it works again, if its failure was logged.
func (t *Trouble) Over() {
	if t.since.IsZero() {
		return
	}
	if !t.said.IsZero() {
		t.Log.Info(t.What+" works again", "after", t.now().Sub(t.since).Round(time.Millisecond))
	}
	t.since, t.said = time.Time{}, time.Time{}
	t.backoff.Reset()
}
