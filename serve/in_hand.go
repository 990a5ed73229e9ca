package serve

import (
	"slices"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// readEvent reads the event in hand, which is only looked at. It is read like a pending one, so that its fields have the same
// values.
func (q *asked) readEvent(v *fastjson.Value) error {
	mapper := q.view.mappers.Get().(*features.Mapper)
	defer q.view.mappers.Put(mapper)
	event, moment, _, err := mapEvent(q.view, mapper, sentEvent{"the event", "event", -1}, v, q.now, new(state.Batch))
	if err != nil {
		return err
	}
	q.event = event.Clone()
	q.happen(q.event.Stream, moment)
	return nil
}

// reads reports whether a feature asked for reads fields of an event of the stream.
func (q *asked) reads(s *record.Stream) bool {
	return slices.ContainsFunc(q.features, func(p *preparedFeature) bool { return p.InHand != nil && p.InHand.Name == s.Name })
}

// inHand returns the event that feature i reads for entity e; nil for none. It is the one that is only looked at, if that is
// of the feature's stream, or else the latest of those pending, and of several at once the last one. An event of another
// entity is not in hand: a list of pending events may be of several.
func (q *asked) inHand(e, i int) (found *record.Event) {
	p, entity := q.features[i], string(q.entities.text(e, q.set[i]))
	among := q.pending.events
	if q.event != nil && q.event.Stream.Name == p.InHand.Name {
		among = []*record.Event{q.event}
	}
	if q.columns != nil {
		among = q.columns.inHand(e, p)
	}
	for _, event := range among {
		if event.Stream.Name == p.InHand.Name && (found == nil || event.Time >= found.Time) && p.MayBeOf(event, entity) {
			found = event
		}
	}
	return found
}
