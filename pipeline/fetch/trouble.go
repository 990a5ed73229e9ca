package fetch

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/weir-stream/weir/pipeline/retry"
)

// ErrNotYetFetched is the error of a partition until its first attempt has ended, which takes at most requestTimeout, and
// of one that has a leader again, which is not asked while its last answers wait for Poll.
var ErrNotYetFetched = errors.New("fetch: not yet fetched from its leader")

// trouble describes why a position cannot be fetched.
type trouble struct {
	err     error
	since   time.Time
	retries retry.Backoff // untried while the first attempt has not ended
}

// Trouble describes a partition that cannot be fetched.
type Trouble struct {
	Topic     string
	Partition int32
	Err       error
	Since     time.Time
}

// Troubles lists the partitions that cannot be fetched now, or have not been fetched yet, by topic and partition. A
// partition that waits for a Seek after an error is not included.
func (p *Poller) Troubles() []Trouble {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Trouble
	for _, pos := range p.positions {
		t, l := pos.trouble, pos.leader
		switch {
		case t == nil:
		case l != nil && l.cancel == nil && l.waiting >= p.cfg.MaxWaiting: // what failed before may work now
			list = append(list, Trouble{pos.Topic, pos.ID, ErrNotYetFetched, t.since})
		default:
			list = append(list, Trouble{pos.Topic, pos.ID, t.err, t.since})
		}
	}
	slices.SortFunc(list, func(a, b Trouble) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return list
}

// fail detaches positions from their leaders, to look for leaders again after a while. Poller.mu is
// held.
func (p *Poller) fail(positions []*position, err error) {
	if len(positions) == 0 || p.ctx.Err() != nil {
		return
	}
	now := time.Now()
	for _, pos := range positions {
		p.detach(pos)
		if pos.trouble == nil {
			pos.trouble = &trouble{retries: fetchBackoff, since: now}
		}
		pos.trouble.err = err
		pos.retryAt = now.Add(pos.trouble.retries.Next())
	}
	p.troubles.Failed(err, "partitions", p.failing())
	signal(p.lost)
}

// recover records that a position was fetched. Poller.mu is held.
func (p *Poller) recover(pos *position) {
	if pos.trouble != nil {
		pos.trouble = nil
		p.endTrouble()
	}
}

// endTrouble logs the end of a trouble when it affects no position any more. Poller.mu is held.
func (p *Poller) endTrouble() {
	if p.failing() == 0 {
		p.troubles.Over()
	}
}

// failing counts the positions with a failed attempt. Poller.mu is held.
func (p *Poller) failing() int {
	n := 0
	for _, pos := range p.positions {
		if pos.trouble != nil && pos.trouble.retries.Tried() {
			n++
		}
	}
	return n
}
