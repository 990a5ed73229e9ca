package plain

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// Register records that a group applies a plan.
func (s *Store) Register(_ context.Context, r state.Registration) ([]state.Rival, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range progress.NewFills(r.Plan, &state.Known{Plans: s.plans, Fills: s.fills}) {
		s.fills[f.ID] = f
	}
	s.plans[r.Plan.Version] = r.Plan
	c, rivals, err := progress.Register(s.used, &r, s.now().UnixMilli())
	if err == nil {
		c.Make(s.used, s.used[progress.ChangeField], rand.Text(), s.now().UnixMilli())
	}
	return rivals, err
}

// Bind adds to a plan the generations of series to keep.
func (s *Store) Bind(_ context.Context, p *state.Plan) (*state.Plan, *state.History, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.history()
	return state.Bind(p, &state.Known{Plans: s.plans, Fills: s.fills, Archives: s.archives, History: h, Now: s.clock()}), h, nil
}

// Fills returns the fills that a plan keeps completely.
func (s *Store) Fills(_ context.Context, p *state.Plan) ([]*state.Fill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.Keeps(s.fills), nil
}

// Archives returns the archives of the namespace.
func (s *Store) Archives(context.Context) ([]*state.Archive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.archives), nil
}

// AddArchive adds the files of a draft that the namespace does not know to those before its cut.
func (s *Store) AddArchive(_ context.Context, draft *state.Archive) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := state.NewArchive(*draft, s.archives); a != nil {
		s.archives = append(s.archives, a)
	}
	return nil
}

// published are the busiest entities of a processor, and when it published them.
type published struct {
	state.Busiest
	at time.Time
}

// PublishBusiest records the busiest entities of a processor.
func (s *Store) PublishBusiest(_ context.Context, processor string, b state.Busiest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busiest[processor] = published{b, s.now()}
	return nil
}

// Busiest returns what each processor published last, if that is not too long ago.
func (s *Store) Busiest(context.Context) (list []state.Busiest, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.busiest, func(_ string, p published) bool { return s.now().Sub(p.at) > state.BusiestFor })
	for _, p := range s.busiest {
		list = append(list, p.Busiest)
	}
	return list, nil
}
