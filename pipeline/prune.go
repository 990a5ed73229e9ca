package pipeline

import "time"

// pruning says by which record time a worker lets state be pruned: by the newest record that every shard had a while ago. Who reads
// state may use a history that is older than it by store.MaxHistoryAge, and an answer must not miss what was pruned since.
type pruning struct {
	grace         time.Duration
	known, coming int64 // timestamps of records, in ms; 0 for none
	since         time.Time
}

// applied notes that every shard has the progress of records up to a timestamp, in ms.
func (p *pruning) applied(newest int64, at time.Time) {
	p.known = p.by(at)
	if p.known == p.coming {
		p.coming, p.since = newest, at
	}
}

// by returns the timestamp, in ms, by which state may be pruned at a moment.
func (p *pruning) by(at time.Time) int64 {
	if at.Sub(p.since) >= p.grace {
		return p.coming
	}
	return p.known
}
