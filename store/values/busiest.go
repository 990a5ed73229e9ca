package values

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/weir-stream/weir/state"
)

// published are the busiest entities of a processor, and when it published them, in ms by the engine's clock.
type published struct {
	At      int64         `json:"at"`
	Busiest state.Busiest `json:"busiest"`
}

// PublishBusiest records the busiest entities of a processor, and forgets those of processors that publish no more.
func (s *Store) PublishBusiest(ctx context.Context, processor string, b state.Busiest) error {
	now := s.engine.Clock(busiestRegister)
	text, err := json.Marshal(published{now, b})
	if err != nil {
		return err
	}
	_, err = records{s}.update(ctx, busiestRegister, func(fields map[string]string) bool {
		fields[processor] = string(text)
		maps.DeleteFunc(fields, func(_, text string) bool {
			p, ok := parsePublished(text)
			return !ok || now-p.At > state.BusiestFor.Milliseconds()
		})
		return true
	})
	return err
}

func parsePublished(text string) (p published, ok bool) {
	ok = json.Unmarshal([]byte(text), &p) == nil
	return p, ok
}

// Busiest returns what each processor published last, if that is not too long ago.
func (s *Store) Busiest(ctx context.Context) (list []state.Busiest, err error) {
	held := s.engine.Read(ctx, []Key{{Shard: busiestRegister}})[0]
	if held.Err != nil {
		return nil, held.Err
	}
	fields, err := parseFields(held.Bytes)
	for _, processor := range slices.Sorted(maps.Keys(fields)) {
		if p, ok := parsePublished(fields[processor]); ok && s.engine.Clock(busiestRegister)-p.At <= state.BusiestFor.Milliseconds() {
			list = append(list, p.Busiest)
		}
	}
	return list, err
}
