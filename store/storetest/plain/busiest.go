package plain

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-stream/weir/state"
)

// PublishBusiest records the busiest entities of a processor.
func (s *Store) PublishBusiest(_ context.Context, processor string, b state.Busiest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busiest[processor] = b
	return nil
}

// Busiest returns what each processor published last.
func (s *Store) Busiest(context.Context) ([]state.Busiest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.busiest)), nil
}
