package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// published is a field of the register of the busiest entities, in JSON: what a processor has published, and when, in ms by the
// clock of the register's server.
type published struct {
	At      int64         `json:"at"`
	Busiest state.Busiest `json:"busiest"`
}

// lately reads what a processor has published; ok is false if that was too long ago.
func lately(text string, clock int64) (p published, ok bool, err error) {
	err = json.Unmarshal([]byte(text), &p)
	return p, err == nil && clock-p.At <= state.BusiestFor.Milliseconds(), err
}

// PublishBusiest records the busiest entities of a processor, and forgets those of processors that publish no more.
func (p *Protocol) PublishBusiest(ctx context.Context, processor string, b state.Busiest) error {
	err := p.changeRegister(ctx, Busiest, func(fields map[string]string, clock int64) (*progress.Change, error) {
		text, err := json.Marshal(published{clock, b})
		c := &progress.Change{Set: map[string]string{processor: string(text)}}
		for name, text := range fields {
			if _, ok, _ := lately(text, clock); !ok && name != progress.ChangeField && name != processor {
				c.Deleted = append(c.Deleted, name)
			}
		}
		return c, err
	})
	if err != nil {
		return fmt.Errorf("publish the busiest entities: %w", err)
	}
	return nil
}

// Busiest returns what each processor published last, if that is not too long ago.
func (p *Protocol) Busiest(ctx context.Context) (list []state.Busiest, err error) {
	found := p.engine.Read(ctx, Query{Records: []int{Busiest}, For: ToChange})[0]
	if found.Err != nil {
		return nil, fmt.Errorf("read the busiest entities: %w", found.Err)
	}
	delete(found.Fields, progress.ChangeField)
	for _, processor := range slices.Sorted(maps.Keys(found.Fields)) {
		p, ok, err := lately(found.Fields[processor], found.Clock)
		if err != nil {
			return nil, fmt.Errorf("read the busiest entities of %s: %w", processor, err)
		}
		if ok {
			list = append(list, p.Busiest)
		}
	}
	return list, nil
}
