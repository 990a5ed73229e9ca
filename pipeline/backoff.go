package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

// backoff is the time to wait before the next of several tries in a row.
type backoff struct{ tries int }

const (
	firstWait   = 50 * time.Millisecond
	longestWait = 5 * time.Second
)

// next is how long to wait now: twice as long each time, up to longestWait,
// less up to a half of it by chance, so that many do not come back at once.
func (b *backoff) next() time.Duration {
	wait := longestWait
	if b.tries < 7 {
		wait = min(firstWait<<b.tries, longestWait)
	}
	b.tries++
	return wait - rand.N(wait/2)
}

// sayAgain is how often a trouble that lasts is told.
const sayAgain = 30 * time.Second

// trouble tells of something that fails again and again: when it begins, from
// time to time, and when it is over.
type trouble struct {
	log   *slog.Logger
	what  string
	waits backoff
	since time.Time
	said  time.Time
}

// namesKey is an error about a key of the store, which may name an entity and
// stands in no text.
type namesKey interface {
	error
	Key() string
}

// failed tells of a failure and returns how long to wait before the next try.
func (t *trouble) failed(err error) time.Duration {
	now := time.Now()
	if t.since.IsZero() {
		t.since = now
	}
	if now.Sub(t.said) >= sayAgain {
		t.said = now
		t.log.Warn(t.what+" fails, trying again", "error", err, "for", now.Sub(t.since).Round(time.Second))
		if named, ok := errors.AsType[namesKey](err); ok {
			t.log.Debug("it is about a key", "key", named.Key())
		}
	}
	return t.waits.next()
}

// over tells that it works again, if it had failed.
func (t *trouble) over() {
	if t.since.IsZero() {
		return
	}
	t.log.Info(t.what+" works again", "after", time.Since(t.since).Round(time.Millisecond))
	t.since, t.said, t.waits = time.Time{}, time.Time{}, backoff{}
}

// wait waits, and says whether the context still stands.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
