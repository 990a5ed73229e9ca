package fetch

import (
	"cmp"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// ErrNotYetFetched is the Trouble of a partition while its first attempt has not ended, which
// takes no longer than PollerConfig.RequestTimeout.
var ErrNotYetFetched = errors.New("fetch: not yet fetched for the first time")

// trouble is what keeps a position from being fetched.
type trouble struct {
	since    time.Time
	err      error
	attempts int // that failed; 0 while the first has not ended
}

// Trouble tells of a partition that cannot be fetched.
type Trouble struct {
	Topic     string
	Partition int32
	Since     time.Time
	Err       error
}

// Troubles lists, by topic and partition, those that cannot be fetched at this moment, or have not yet been; it is
// empty when all is well. A partition that waits for a Seek after an error is not among them.
func (p *Poller) Troubles() []Trouble {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Trouble
	for _, pos := range p.positions {
		if t := pos.trouble; t != nil {
			list = append(list, Trouble{pos.topic, pos.partition, t.since, t.err})
		}
	}
	slices.SortFunc(list, func(a, b Trouble) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return list
}

const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second
)

// backoff is how long to wait after so many failures: it doubles up to maxBackoff, less up to half by chance.
func backoff(attempts int) time.Duration {
	const doublings = 6 // more than lead to maxBackoff, few enough not to overflow
	d := min(firstBackoff<<min(attempts-1, doublings), maxBackoff)
	return d - rand.N(d/2)
}

// fail takes positions away from their leaders, to look for them again after a while. Poller.mu is held.
func (p *Poller) fail(positions []*position, err error) {
	if len(positions) == 0 || p.ctx.Err() != nil {
		return
	}
	now := time.Now()
	for _, pos := range positions {
		p.detach(pos)
		if pos.trouble == nil {
			pos.trouble = &trouble{since: now}
		}
		pos.trouble.err = err
		pos.trouble.attempts++
		pos.retryAt = now.Add(backoff(pos.trouble.attempts))
	}
	p.troubles.failed(now, p.failing(), err)
	signal(p.lost)
}

// recover says that a position was fetched. Poller.mu is held.
func (p *Poller) recover(pos *position) {
	if pos.trouble != nil {
		pos.trouble = nil
		p.settle()
	}
}

// settle ends the log's trouble when no position is left in it. Poller.mu is held.
func (p *Poller) settle() {
	if p.failing() == 0 {
		p.troubles.over(time.Now())
	}
}

// failing counts the positions of which an attempt has failed. Poller.mu is held.
func (p *Poller) failing() int {
	n := 0
	for _, pos := range p.positions {
		if pos.trouble != nil && pos.trouble.attempts > 0 {
			n++
		}
	}
	return n
}

// logEvery is how often trouble that goes on is logged.
const logEvery = 30 * time.Second

// troubleLog logs when trouble begins, that it goes on, and when it is over.
type troubleLog struct {
	logger *slog.Logger
	since  time.Time // zero while there is none
	logged time.Time
}

func (l *troubleLog) failed(now time.Time, partitions int, err error) {
	switch {
	case l.since.IsZero():
		l.since = now
		l.logger.Warn("cannot fetch, will keep trying", "partitions", partitions, "error", err)
	case now.Sub(l.logged) >= logEvery:
		l.logger.Warn("still cannot fetch", "partitions", partitions, "for", now.Sub(l.since), "error", err)
	default:
		return
	}
	l.logged = now
}

func (l *troubleLog) over(now time.Time) {
	if l.since.IsZero() {
		return
	}
	l.logger.Info("fetching all partitions again", "after", now.Sub(l.since))
	l.since = time.Time{}
}
