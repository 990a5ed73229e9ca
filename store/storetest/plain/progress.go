package plain

import (
	"context"
	"crypto/rand"
	"math"
	"strconv"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// shard is one shard: its record, and the states that belong to it.
type shard struct {
	fields  map[string]string // of the record, see package progress
	states  map[key]*held
	spoiled map[key]bool // without the series
	hangs   bool
}

func newShard() *shard {
	return &shard{fields: map[string]string{}, states: map[key]*held{}, spoiled: map[key]bool{}}
}

// record returns the record of the shard.
func (s *Store) record(sh *shard) *progress.Record {
	r, err := progress.Of(sh.fields, s.now().UnixMilli())
	if err != nil {
		panic(err) // package progress has written all fields
	}
	return r
}

// change makes a step in the shards that do not hang.
func (s *Store) change(step func(shard int, r *progress.Record) error) error {
	for shard, sh := range s.shards {
		if sh.hangs {
			continue
		}
		r := s.record(sh)
		if err := step(shard, r); err != nil {
			return err
		}
		if c := r.Change(); c != nil && !c.Make(sh.fields, r.LastChange(), rand.Text(), s.now().UnixMilli()) {
			panic("a change of a record that nobody else has changed was refused")
		}
	}
	return nil
}

// meet returns where a range continues; nil if the shard lacks what it had confirmed, or if another plan has the
// partition.
func (sh *shard) meet(r *state.PartitionRange, shard int) *state.Position {
	at, err := state.ParsePosition(sh.fields[progress.PositionField(r.Partition)])
	if known := r.Progress[shard]; err != nil || !at.Exists() || at != known && !at.Continues(known, r.Epoch) {
		r.Behind = true
		return nil
	}
	r.Progress[shard] = at
	return &at
}

// Progress reads each partition's positions by shard.
func (s *Store) Progress(_ context.Context, partitions []state.Partition) ([][]state.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.hang(); err != nil {
		return nil, err
	}
	all := make([][]state.Position, len(partitions))
	for _, sh := range s.shards {
		r := s.record(sh)
		for i, p := range partitions {
			all[i] = append(all[i], r.Position(p))
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
	for shard, sh := range s.shards {
		if (concerned[shard] || len(reads) == 0) && (sh.hangs || s.record(sh).Position(p).Offset <= offset) {
			return false, nil
		}
	}
	return true, nil
}

// Place sets the progress of partitions that is still as expected.
func (s *Store) Place(_ context.Context, placements ...state.Placement) (placed int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.change(func(shard int, r *progress.Record) error {
		placed += r.Place(shard, placements)
		return nil
	})
	if err == nil {
		err = s.hang()
	}
	return placed, err
}

// Log returns the log with the tag of a position.
func (s *Store) Log(_ context.Context, tag string) (log state.LogID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		if known, ok := s.record(sh).Log(tag); ok && !sh.hangs {
			return known, nil
		}
	}
	return state.LogID{}, s.hang()
}

// Gap records that records of a partition were skipped.
func (s *Store) Gap(_ context.Context, p state.Partition, until int64) error {
	return s.changeAll(func(r *progress.Record) { r.Gap(p.Topic, until) })
}

// StartFill sets where the filling of partitions starts, or raises the moment since which they are covered.
func (s *Store) StartFill(_ context.Context, starts ...state.FillStart) error {
	return s.changeAll(func(r *progress.Record) { r.StartFill(starts) })
}

func (s *Store) changeAll(step func(*progress.Record)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.change(func(_ int, r *progress.Record) error {
		step(r)
		return nil
	})
	if err != nil {
		return err
	}
	return s.hang()
}

// Fillings reads the progress of a fill for each partition, by shard.
func (s *Store) Fillings(_ context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.hang(); err != nil {
		return nil, err
	}
	all := make([][]state.Filling, len(partitions))
	for _, sh := range s.shards {
		r := s.record(sh)
		for i, p := range partitions {
			all[i] = append(all[i], r.Filling(f, p))
		}
	}
	return all, nil
}

// BeginArchives records in all shards which archives a fill over a cut needs.
func (s *Store) BeginArchives(_ context.Context, f *state.Fill, archives []*state.Archive) ([][]state.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.hang(); err != nil {
		return nil, err
	}
	positions := make([][]state.Position, len(archives))
	err := s.change(func(_ int, r *progress.Record) error {
		begun, err := r.BeginArchives(f, s.fills, archives)
		for i, at := range begun {
			positions[i] = append(positions[i], at)
		}
		return err
	})
	return positions, err
}

// Claim takes partitions for the plan of a version.
func (s *Store) Claim(_ context.Context, partitions []state.Partition, by state.Claimant) ([]state.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	claims := make([]state.Claim, len(partitions))
	for i := range claims {
		claims[i] = state.Claim{OwnedMs: math.MaxInt64, Progress: make([]state.Position, len(s.shards))}
		for shard, sh := range s.shards {
			if sh.hangs {
				claims[i].Miss(shard, errHangs)
			}
		}
	}
	claimant := progress.NewClaimant(by.Version, by.GivesWayTo, &state.Known{Plans: s.plans, Fills: s.fills})
	err := s.change(func(shard int, r *progress.Record) error {
		for i, c := range r.Claim(partitions, claimant) {
			c.AddTo(&claims[i], shard)
		}
		return nil
	})
	if err == nil {
		err = s.allHang()
	}
	return claims, err
}

// Clock returns the greatest timestamp of a record applied.
func (s *Store) Clock(context.Context) (now int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock(), nil
}

func (s *Store) clock() (now int64) {
	for _, sh := range s.shards {
		now = max(now, s.record(sh).Newest())
	}
	return now
}

// History says which plans wrote the state.
func (s *Store) History(context.Context) (*state.History, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history(), s.allHang()
}

// history has what is known of shards that hang, too, and says so.
func (s *Store) history() *state.History {
	var records []*progress.Record
	for _, sh := range s.shards {
		records = append(records, s.record(sh))
	}
	h := progress.History(records, s.plans, s.knownFills(records))
	h.Slack = slack.Milliseconds()
	h.Now = h.Newest // by the records' times only: tests replay the past
	if s.hang() != nil {
		h.Missing = func(r *state.Read) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.shardOf(r.Entity).err()
		}
	}
	return h
}

// knownFills returns the fills that the shards know and the plans have.
func (s *Store) knownFills(records []*progress.Record) map[string]*state.Fill {
	fills := map[string]*state.Fill{}
	for id := range progress.Fills(records) {
		if f := s.fills[id]; f != nil {
			fills[id] = f
		}
	}
	return fills
}

// pass notes the greatest timestamp of a record, and how far it is behind the clock; both in ms.
func (sh *shard) pass(timestamp, clock int64) {
	known := func(field string, none int64) int64 {
		if n, err := strconv.ParseInt(sh.fields[field], 10, 64); err == nil {
			return n
		}
		return none
	}
	if timestamp > known(progress.NewestField, 0) {
		sh.fields[progress.NewestField] = strconv.FormatInt(timestamp, 10)
		sh.fields[progress.LagField] = strconv.FormatInt(min(max(0, clock-timestamp), known(progress.LagField, math.MaxInt64)), 10)
	}
}
