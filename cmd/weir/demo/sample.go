package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/generate"
)

// sampleSize is the number of events among which a demo looks for entities to
// ask about.
const sampleSize = 100

// sample holds the first events written.
type sample struct {
	mu     sync.Mutex
	values [][]byte
}

func (s *sample) keep(events []generate.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events[:min(len(events), sampleSize-len(s.values))] {
		s.values = append(s.values, e.Value)
	}
}

// entity finds an event that has all keys of the features and returns them.
func (s *sample) entity(wanted ...*features.Feature) (map[string]string, bool) {
	s.mu.Lock()
	values := slices.Clone(s.values)
	s.mu.Unlock()
	for _, value := range values {
		if entity, ok := entityOf(value, wanted); ok {
			return entity, true
		}
	}
	return nil, false
}

// entityOf reads the keys of the features out of an event; derived ones it
// does not know.
func entityOf(value []byte, wanted []*features.Feature) (map[string]string, bool) {
	var event map[string]any
	if json.Unmarshal(value, &event) != nil {
		return nil, false
	}
	entity := map[string]string{}
	for _, f := range wanted {
		for _, name := range f.By {
			var at any = event
			for _, step := range f.Key(name).Path {
				object, _ := at.(map[string]any)
				at = object[step]
			}
			text, isText := at.(string)
			if number, isNumber := at.(float64); isNumber {
				text, isText = fmt.Sprint(number), true
			}
			if !isText {
				return nil, false
			}
			entity[name] = text
		}
	}
	return entity, true
}
