package serve

import (
	"context"
	"net/http"
	"strconv"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
)

// readTimeline reads the question for a timeline: about one feature and one entity.
func (h *handler) readTimeline(q *question, w http.ResponseWriter, r *http.Request) error {
	if err := h.readQuery(q, w, r); err != nil {
		return err
	}
	return q.index.features[r.PathValue("name")].checkTimeline(q.request.members != nil)
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
func (q *question) addPoints() {
	q.reading.Reset(q.now)
	q.reading.SetPresent(q.present)
	q.points = 0
	if q.oldest[0] != answerable || q.lacksKey(0, 0) {
		return
	}
	for _, point := range query.Timeline(q.features[0].Feature, q.at) {
		q.reading.Want(point.Feature, string(q.texts.bytes), point.At)
		q.points++
	}
}

// encodePoints writes an answer for each stretch of the window:
//
//	{"at": 1532496076032, "points": [{"value": 1, "status": "PRESENT", "from": 1531958400000, "to": …}, …]}
//
// If the moment lies further back than the feature is kept, there is one point, with the status OUTSIDE_MAX_AGE;
// if a key is null, one with NOT_FOUND.
func (q *question) encodePoints(_ context.Context, history *state.History) error {
	q.complete(history)
	out := strconv.AppendInt(append(q.out, `{"at":`...), q.at, 10)
	out = append(append(out, q.waited...), q.readFrom...)
	out = append(out, `,"points":[`...)
	var a query.Answer
	for i := range q.points {
		q.reading.NextSince(&a, q.since[0])
		q.noteUnread(&a)
		a.CompleteAt = 0 // a piece no longer changes
		if i > 0 {
			out = append(out, ',')
		}
		out = a.AppendJSON(out)
	}
	if q.oldest[0] != answerable || q.lacksKey(0, 0) {
		q.next(&a, 0, 0)
		out = a.AppendJSON(out)
	}
	q.out = append(out, "]}\n"...)
	return nil
}
