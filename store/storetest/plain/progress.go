package plain

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/state"
)

// shard is the progress of one shard.
type shard struct {
	owned    map[state.Partition]*ownership
	ended    map[epoch]int64 // until when a plan was applied that no longer is, in ms
	topics   map[string]state.FirstSeen
	logs     map[string]state.LogID       // by tag
	fillings map[state.Partition]*filling // by the name of a fill's progress, see state.Fill.Partition
	now      int64                        // the greatest timestamp of a record, in ms
	lag      *int64                       // the least time by which now was behind the clock, in ms
	states   map[key]*held
	spoiled  map[key]bool // without the series
	hangs    bool
	archives map[state.Cut]map[string]*state.Archive
	rows     map[state.Partition]*state.Position // by the name of a fill's progress, see state.Fill.Archive
}

// ownership is the progress of a partition under the plan that has it.
type ownership struct {
	version string
	at      state.Position
	since   time.Time // when the plan took it, or a gap was marked before it
}

// epoch names a plan that was applied to a topic.
type epoch struct{ topic, version string }

func newShard() *shard {
	return &shard{
		owned: map[state.Partition]*ownership{}, ended: map[epoch]int64{}, topics: map[string]state.FirstSeen{},
		logs: map[string]state.LogID{}, fillings: map[state.Partition]*filling{}, states: map[key]*held{}, spoiled: map[key]bool{},
		archives: map[state.Cut]map[string]*state.Archive{}, rows: map[state.Partition]*state.Position{},
	}
}

// split returns a partition without a plan, and the plan's version.
func split(p state.Partition) (state.Partition, string) {
	topic, version, _ := strings.Cut(p.Topic, "@")
	return state.Partition{Topic: topic, ID: p.ID}, version
}

// position returns the position of a partition under the plan or the fill in its name; nil if there is none.
func (sh *shard) position(p state.Partition) *state.Position {
	if at := sh.rows[p]; at != nil {
		return at
	}
	if f := sh.fillings[p]; f != nil {
		if !f.Begun || f.Broken {
			return nil
		}
		return &f.At
	}
	partition, version := split(p)
	if o := sh.owned[partition]; o != nil && o.version == version {
		return &o.at
	}
	return nil
}

// meet returns where a range continues; nil if the shard lacks what it had confirmed, or if another plan has the
// partition.
func (sh *shard) meet(r *state.PartitionRange, shard int) *state.Position {
	at := sh.position(r.Partition)
	if known := r.Progress[shard]; at == nil || *at != known && !at.Continues(known, r.Epoch) {
		r.Behind = true
		return nil
	}
	r.Progress[shard] = *at
	return at
}

// end notes until when a plan was applied to a topic.
func (sh *shard) end(topic, version string, last int64) {
	e := epoch{topic, version}
	sh.ended[e] = max(sh.ended[e], last)
}

// maxEpochs is the number of past epochs of a topic that a shard keeps; the earliest of more become one gap.
const maxEpochs = 64

// mergeEpochs merges the earliest epochs of a topic into a gap, if there are too many.
func (sh *shard) mergeEpochs(topic string) {
	var past []epoch
	for e := range sh.ended {
		if e.topic == topic && e.version != state.Gap {
			past = append(past, e)
		}
	}
	slices.SortFunc(past, func(a, b epoch) int { return cmp.Compare(sh.ended[a], sh.ended[b]) })
	for _, e := range past[:max(0, len(past)-maxEpochs)] {
		sh.end(topic, state.Gap, sh.ended[e])
		delete(sh.ended, e)
	}
}

// clamp lowers timestamps that are not believed.
func (sh *shard) clamp(latest int64) {
	sh.now = min(sh.now, latest)
	for e, last := range sh.ended {
		sh.ended[e] = min(last, latest)
	}
}

// found returns the position of a partition under any plan.
func (sh *shard) found(p state.Partition) state.Position {
	if o := sh.owned[p]; o != nil {
		return o.at
	}
	return state.NoPosition
}

// Progress reads each partition's positions by shard.
func (s *Store) Progress(_ context.Context, partitions []state.Partition) ([][]state.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.hang(); err != nil {
		return nil, err
	}
	all := make([][]state.Position, len(partitions))
	for i := range partitions {
		p, _ := split(partitions[i])
		for _, sh := range s.shards {
			all[i] = append(all[i], sh.found(p))
		}
	}
	return all, nil
}

// Applied reports whether a record is applied in all shards of the reads, or in all shards.
func (s *Store) Applied(_ context.Context, p state.Partition, offset int64, reads []state.Read) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	concerned := map[int]bool{}
	for _, r := range reads {
		concerned[state.Shard(state.EntityHash([]byte(r.Entity)), len(s.shards))] = true
	}
	p, _ = split(p)
	for shard, sh := range s.shards {
		if (concerned[shard] || len(reads) == 0) && (sh.hangs || sh.found(p).Offset <= offset) {
			return false, nil
		}
	}
	return true, nil
}

// Place sets the progress of partitions that is still as expected.
func (s *Store) Place(_ context.Context, placements ...state.Placement) (placed int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range placements {
		for shard, sh := range s.shards {
			if !sh.hangs && sh.place(&placements[i], placements[i].From[shard], placements[i].To[shard], s.now()) {
				placed++
			}
		}
	}
	return placed, s.hang()
}

func (sh *shard) place(w *state.Placement, from, to state.Position, now time.Time) bool {
	p, version := split(w.Partition)
	if from == to || sh.found(p) != from {
		return false
	}
	o := sh.owned[p]
	if o == nil {
		o = &ownership{version: version}
		sh.owned[p] = o
	} else {
		sh.unplace(p, from, to, w.Log)
	}
	o.at = to
	if !from.Exists() || w.Gap > 0 {
		o.since = now
	}
	if known, met := sh.topics[p.Topic]; met {
		sh.topics[p.Topic] = state.FirstSeen{Log: to.Log, Partitions: known.Partitions}
	} else {
		sh.topics[p.Topic] = state.FirstSeen{Log: to.Log, Partitions: w.Partitions}
	}
	if _, known := sh.logs[to.Log]; to.Log != "" && !known {
		sh.logs[to.Log] = w.Log
	}
	if w.Gap > 0 {
		sh.end(p.Topic, state.Gap, max(w.Gap, sh.now))
	}
	return true
}

// Log returns the log with the tag of a position.
func (s *Store) Log(_ context.Context, tag string) (log state.LogID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		if known, ok := sh.logs[tag]; ok && !sh.hangs {
			return known, nil
		}
	}
	return state.LogID{}, s.hang()
}

// Gap records that records of a partition were skipped.
func (s *Store) Gap(_ context.Context, p state.Partition, until int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ = split(p)
	for _, sh := range s.shards {
		if !sh.hangs {
			sh.end(p.Topic, state.Gap, max(until, sh.now))
		}
	}
	return s.hang()
}

// Clock returns the greatest timestamp of a record applied.
func (s *Store) Clock(context.Context) (now int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock(), nil
}

func (s *Store) clock() (now int64) {
	for _, sh := range s.shards {
		now = max(now, sh.now)
	}
	return now
}
