package serve

import (
	"context"
	"strconv"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/reply"
)

// timeline answers about one feature and one entity, in q.request, and leaves the response in
// q.out: an answer for each stretch of the window.
//
//	{"at": 1532496076032, "points": [{"value": 1, "status": "PRESENT", "from": 1531958400000, "to": …}, …]}
//
// If the moment lies further back than the feature is kept, there is one point, with the status
// OUTSIDE_MAX_AGE. Everything is read in one round trip.
func (h *handler) timeline(ctx context.Context, q *question) error {
	if err := q.decode(q.indexFor(h), h.limits); err != nil {
		return err
	}
	p := q.features[0]
	if err := p.checkTimeline(len(q.members.values) > 0); err != nil {
		return err
	}
	if err := q.nameEntities(); err != nil {
		return err
	}
	h.metrics.ask(q)
	if err := q.waitForEvent(ctx, h); err != nil {
		return err
	}
	if err := q.findOldest(ctx, h.Reader); err != nil {
		return err
	}
	points := q.addPoints()
	history, err := h.readWithHistory(ctx, q)
	if err != nil {
		return err
	}
	if other, err := q.readsOther(h); err != nil {
		return err
	} else if other {
		points = q.addPoints()
		if history, err = h.readWithHistory(ctx, q); err != nil {
			return err
		}
	}
	q.complete(history)
	q.out = strconv.AppendInt(append(q.out, `{"at":`...), q.at, 10)
	q.out = append(append(q.out, q.waited...), q.readFrom...)
	q.out = append(q.out, `,"points":[`...)
	for i := range points {
		var a query.Answer
		q.reading.NextSince(&a, q.since[0])
		q.noteUnread(&a)
		a.CompleteAt = 0 // a piece no longer changes
		if i > 0 {
			q.out = append(q.out, ',')
		}
		q.out = a.AppendJSON(q.out)
	}
	if q.oldest[0] != answerable {
		var a query.Answer
		q.next(&a, 0)
		q.out = a.AppendJSON(q.out)
	}
	q.out = append(q.out, "]}\n"...)
	return nil
}

// checkTimeline returns why a feature has no timeline, or nil.
func (p *preparedFeature) checkTimeline(members bool) error {
	var e *reply.Error
	switch {
	case !query.HasTimeline(p.Feature):
		e = reply.Errorf(reply.NoTimeline, "feature %q has no timeline: its value is not a number, or its window does not fall into stretches of time; ask for the feature itself", p.Name)
	case members:
		e = reply.Errorf(reply.NoMembers, "the timeline of feature %q has no members: omit them", p.Name)
		e.Key = memberParameter
	default:
		return nil
	}
	e.Feature = p.Name
	return e
}

// addPoints lists the reads for each stretch of the window.
func (q *question) addPoints() (points []query.Point) {
	q.reading.Reset(q.now)
	if q.oldest[0] == answerable {
		points = query.Timeline(q.features[0].Feature, q.at)
	}
	for _, point := range points {
		q.reading.Want(point.Feature, string(q.texts.bytes), point.At)
	}
	return points
}
