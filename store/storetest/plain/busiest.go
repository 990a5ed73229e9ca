package plain

import (
	"context"
	"maps"
	"time"

	"github.com/weir-stream/weir/state"
)

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
