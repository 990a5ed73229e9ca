package backfill

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
)

// Running describes a backfill under way in this process, for its partitions of one topic.
type Running struct {
	Features []string // what is filled, sorted by name
	Topic    string
	Applied  int64 // offsets, of Total; both are 0 before it has begun
	Total    int64
	// Rate is the number of offsets per second since this process began; 0 while unknown.
	Rate float64
	Left time.Duration // about how long the rest takes at that rate; 0 while unknown
	// Files are applied by another process, see FromFiles.
	Files Files
}

// Files are the files that a fill needs, with their rows.
type Files struct {
	Count         int
	Applied, Rows int64 // of rows
}

// Running lists the backfills under way, by features and topic.
func (b *Backfiller) Running() []Running { return b.running.list() }

// running remembers the backfills under way. It is safe for concurrent use.
type running struct {
	mu  sync.Mutex
	all map[fillOf]*runningFill
}

type fillOf struct{ fill, topic string }

type runningFill struct {
	Running
	pace pace
}

// set replaces the progress of a fill: of the partitions of this process, by topic, and of the files.
func (s *running) set(f *state.Fill, features []string, progress map[string]Progress, files Files, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic := range f.Columns {
		key := fillOf{f.ID, topic}
		p, here := progress[topic]
		if !here || p.Done && files.Applied == files.Rows {
			delete(s.all, key)
			continue
		}
		r := s.all[key]
		if r == nil {
			r = &runningFill{}
			s.all[key] = r
		}
		r.pace.note(p, now)
		r.Running = Running{
			Features: features, Topic: topic, Applied: p.Filled, Total: p.All,
			Rate: r.pace.rate(p, now), Left: r.pace.left(p, now), Files: files,
		}
	}
}

// forget removes a fill that is no longer worked on.
func (s *running) forget(f *state.Fill) { s.set(f, nil, nil, Files{}, time.Time{}) }

func (s *running) list() (list []Running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range maps.Values(s.all) {
		list = append(list, r.Running)
	}
	slices.SortFunc(list, func(a, b Running) int {
		return cmp.Or(slices.Compare(a.Features, b.Features), cmp.Compare(a.Topic, b.Topic))
	})
	return list
}

// pace measures how fast something is filled, from the first known progress on.
type pace struct {
	began  time.Time // zero before that
	filled int64     // by then
}

// note begins the measurement with the first progress.
func (p *pace) note(is Progress, now time.Time) {
	if p.began.IsZero() && is.All > 0 {
		p.began, p.filled = now, is.Filled
	}
}

// rate returns offsets a second; 0 if unknown.
func (p *pace) rate(is Progress, now time.Time) float64 {
	if p.began.IsZero() || is.Filled <= p.filled || !now.After(p.began) {
		return 0
	}
	return float64(is.Filled-p.filled) / now.Sub(p.began).Seconds()
}

// longest bounds estimates: a fill that hardly moves tells nothing, and a duration has no more than 292 years.
const longest = 366 * 24 * time.Hour

// left estimates how long the rest takes; 0 if unknown.
func (p *pace) left(is Progress, now time.Time) time.Duration {
	rate := p.rate(is, now)
	seconds := float64(is.All-is.Filled) / rate
	if rate == 0 || seconds > longest.Seconds() {
		return 0
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}
