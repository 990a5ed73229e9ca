package serve

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/store"
)

// question is one question while it is answered. Each stage leaves a value for the next: what was sent, what it asks, what
// was found for it, and the answer. Its memory is reused, see newQuestion and free.
type question struct {
	request request
	asked   asked
	found   found
	answer  answer
	held    held
}

var questions = sync.Pool{New: func() any {
	return &question{request: request{parts: make([]*fastjson.Value, len(options))}}
}}

func newQuestion(now time.Time, b *budgets) *question {
	q := questions.Get().(*question)
	q.held.budgets = b
	ms := now.UnixMilli()
	q.asked.moments = moments{now: ms, at: ms, present: ms}
	return q
}

// free returns the question's memory for reuse, and window states to their reader, unless it is too large to keep. Each
// stage begins again as its zero value, with the memory that its reset names.
func (q *question) free(reader store.Reader) {
	reader.Recycle(q.found.reading.WindowStates())
	const maxBody, maxOut = 64 << 10, 256 << 10 // the parser keeps parsedSize times the body
	if cap(q.request.body) > maxBody || cap(q.answer.out) > maxOut {
		return
	}
	q.request.reset()
	q.asked.reset()
	q.found.reset()
	q.answer.reset()
	q.held = held{}
	questions.Put(q)
}

// emptied returns a list without elements, in the same memory, which refers to nothing.
func emptied[T any](list []T) []T {
	clear(list)
	return list[:0]
}

// spans are ranges of bytes, one after another.
type spans struct {
	bytes []byte
	ends  []int
}

func (s *spans) emptied() spans { return spans{s.bytes[:0], s.ends[:0]} }
func (s *spans) end()           { s.ends = append(s.ends, len(s.bytes)) }

// bounds returns the bounds of range i in bytes.
func (s *spans) bounds(i int) (from, to int) {
	if i > 0 {
		from = s.ends[i-1]
	}
	return from, s.ends[i]
}

// asked is what a question asks: all of it exists, and the client may ask for it.
type asked struct {
	view   view
	limits Limits
	moments
	selection
	entities entities
	pending  pending
	event    *record.Event // in hand, and only looked at; nil for none
	wait     *wait         // for an event on the bus; nil for none
	columns  *columns      // for a question in Feast's protocol, else nil
}

func (q *asked) reset() {
	*q = asked{selection: q.selection.emptied(), entities: q.entities.emptied(), pending: pending{outcomes: q.pending.outcomes[:0]}}
}

// understand reads the parts of a request.
func (q *asked) understand(r *request, limits Limits) error {
	q.view, q.limits, q.columns = r.view, limits, r.columns
	for i, v := range r.parts {
		if v == nil && !options[i].missed {
			continue
		}
		if err := options[i].read(q, v); err != nil {
			return err
		}
	}
	switch n := len(q.entities.sent); {
	case len(q.features) == 0:
		return reply.Errorf(reply.MissingFeatures, `a question must name features or a service, such as "features": ["device_tx_7d"]`)
	case n == 0:
		return reply.Errorf(reply.MissingEntities, `a question must have entities, such as "entities": [{"device_id": "d000001"}]`)
	case n*q.cost() > limits.Values:
		return q.tooMany(n)
	}
	if err := q.entities.name(&q.selection); err != nil || q.columns == nil {
		return err
	}
	if err := q.columns.readEvents(q); err != nil {
		return err
	}
	if q.columns.events != nil {
		q.entities.distinguish()
	}
	return nil
}

// selection is what a question asks about each of its entities.
type selection struct {
	features []*preparedFeature
	// sets are the distinct key sets of the features. set is the index of each feature's key set.
	sets    []*keySet
	set     []int
	members members
	about   []*features.Feature // by feature, with its members
}

func (s *selection) emptied() selection {
	return selection{emptied(s.features), emptied(s.sets), s.set[:0], s.members.emptied(), emptied(s.about)}
}

func (s *selection) add(p *preparedFeature) {
	if slices.Contains(s.features, p) {
		return
	}
	set := slices.Index(s.sets, p.keys)
	if set < 0 {
		set = len(s.sets)
		s.sets = append(s.sets, p.keys)
	}
	s.features, s.set = append(s.features, p), append(s.set, set)
}

// answers returns the number of values in the answer for one entity: one for each member, and one for each feature
// without members.
func (s *selection) answers() int {
	n := 0
	for i := range s.features {
		from, to := s.members.of(i)
		n += max(1, to-from)
	}
	return n
}

// cost returns how many values an entity counts as: one for each member, one for each feature without members, and one
// for each further entity that multi-hop features may read.
func (s *selection) cost() int {
	n := s.answers()
	for _, p := range s.features {
		n += p.fanOut
	}
	return n
}

// askedAbout is feature i, asked about its named members.
func (s *selection) askedAbout(i int) *features.Feature {
	f := s.features[i].Feature
	if from, to := s.members.of(i); from < to {
		return f.AskedAbout(s.members.values[from:to])
	}
	return f
}

// readFeatures finds the features that are named, each once, in order.
func (q *asked) readFeatures(names *fastjson.Value) error {
	list, err := names.Array()
	if err != nil {
		return reply.Wrong("features", "a list of names", names)
	}
	if len(list) > q.limits.Values {
		return reply.TooMany(fmt.Sprintf("%d features", len(list)), 1, q.limits.Values)
	}
	for _, v := range list {
		name, err := v.StringBytes()
		if err != nil {
			return reply.WrongItem("features", "a list of names", v)
		}
		p, err := q.view.askable(name)
		if err != nil {
			return err
		}
		q.add(p)
	}
	return nil
}

// readService adds the features of a service.
func (q *asked) readService(service *fastjson.Value) error {
	name, err := service.StringBytes()
	if err != nil {
		return reply.Wrong("service", "a name", service)
	}
	inService, err := q.view.askableService(string(name))
	if err != nil {
		return err
	}
	for _, p := range inService {
		q.add(p)
	}
	return nil
}

// readEntities reads the entities of the question.
func (q *asked) readEntities(entities *fastjson.Value) error {
	list, err := entities.Array()
	switch {
	case err != nil:
		return reply.Wrong("entities", "a list of objects", entities)
	case len(list) == 0:
		return reply.Errorf(reply.MissingEntities, "entities must not be empty")
	}
	for i, v := range list {
		if v.Type() != fastjson.TypeObject {
			return reply.WrongItem("entities", "a list of objects", v).InEntity(i)
		}
	}
	q.entities.sent = append(q.entities.sent, list...)
	return nil
}

// tooMany refuses a question whose features cost too much for its entities.
func (q *asked) tooMany(entities int) error {
	what := fmt.Sprintf("%d features", len(q.features))
	if n := len(q.members.values); n > 0 {
		what += fmt.Sprintf(" with %d members", n)
	}
	if fanOut := q.cost() - q.answers(); fanOut > 0 {
		what += fmt.Sprintf(", which may read up to %d further entities,", fanOut)
	}
	return reply.TooMany(what, entities, q.limits.Values)
}
