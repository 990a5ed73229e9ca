package serve

import (
	"context"
	"net/http"
	"strconv"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/reply"
)

// readTimeline reads the question for a timeline: about one feature and one entity.
func (h *handler) readTimeline(q *question, w http.ResponseWriter, r *http.Request) error {
	if err := h.readQuery(q, w, r); err != nil {
		return err
	}
	return q.request.view.features[r.PathValue("name")].checkTimeline(*q.request.part("members") != nil)
}

// checkTimeline returns why a feature has no timeline, or nil.
func (p *preparedFeature) checkTimeline(members bool) error {
	var e *reply.Error
	switch {
	case !query.HasTimeline(p.Feature):
		e = reply.Errorf(reply.NoTimeline, "feature %q has no timeline: its value is not a number, or its window does not fall into stretches of time; ask for the feature itself", p.Name)
	case members:
		e = reply.Errorf(reply.NoMembers, "the timeline of feature %q has no members: omit them", p.Name)
		e.Key = "member"
	default:
		return nil
	}
	return e.About(p.Name)
}

// addPoints lists the reads for each stretch of the window.
func (f *found) addPoints(q *asked) {
	f.begin(q)
	f.points = 0
	if f.oldest[0] != answerable || q.entities.lacksKey(0, 0) {
		return
	}
	for _, point := range query.Timeline(q.features[0].Feature, q.at) {
		f.reading.Want(point.Feature, string(q.entities.texts.bytes), point.At)
		f.points++
	}
}

// encodePoints writes an answer for each stretch of the window:
//
//	{"at": 1532496076032, "points": [{"value": 1, "status": "PRESENT", "from": 1531958400000, "to": …}, …]}
//
// If the moment lies further back than the feature is kept, there is one point, with the status OUTSIDE_MAX_AGE;
// if a key is null, one with NOT_FOUND.
func (w *answer) encodePoints(context.Context) error {
	q, f := w.asked, w.found
	out := strconv.AppendInt(append(w.out, `{"at":`...), q.at, 10)
	out = append(append(out, f.waited...), f.readFrom...)
	out = append(out, `,"points":[`...)
	var a query.Answer
	for i := range f.points {
		f.reading.NextSince(&a, f.since[0])
		w.noteUnread(&a)
		a.CompleteAt = 0 // a piece no longer changes
		if i > 0 {
			out = append(out, ',')
		}
		out = a.AppendJSON(out)
	}
	if f.oldest[0] != answerable || q.entities.lacksKey(0, 0) {
		w.next(&a, 0, 0)
		out = a.AppendJSON(out)
	}
	w.out = append(out, "]}\n"...)
	return nil
}
