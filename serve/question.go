package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// question is one question while it is answered. Its memory is used again for
// the next, see newQuestion and free.
type question struct {
	client *credentials.Client // who asks; nil where nobody has to say

	now   int64  // milliseconds
	at    int64  // milliseconds
	index *index // nil until it is looked at
	plans []*plan
	// sets are the different key sets of the plans; set is by plan the index of
	// its own.
	sets     []*keySet
	set      []int
	entities []*fastjson.Value

	// echoes are the entities as they were sent, texts their texts: that of
	// entity e by set s is text e*len(sets)+s.
	echoes, texts spans
	members       members
	asked         []*features.Feature // by plan, about its members
	values        []*fastjson.Value   // of one entity, by set and key

	// first is by entity the first one of the same texts, which may be itself: it is
	// answered once. written is where its features stand in out.
	first   []int
	written []bounds
	byHash  map[uint64]int // the first entity with texts of a hash
	literal []byte         // one value as it was sent

	// pending is what events do that are not yet on the bus; nil for none.
	// outcomes is what became of them, in JSON.
	pending  *state.Batch
	outcomes []byte

	// damaged is the number of answers that damaged state stands in the way of,
	// damage what is wrong with the first.
	damaged int
	// unavailable is the number of those that a master that does not answer does.
	unavailable int
	damage      error

	wait      *wait     // for an event on the bus; nil for none
	waited    []byte    // what came of it, in JSON
	applied   bool      // the event is, as was found at
	appliedAt time.Time // this moment

	young    bool   // something was filled since the state was read that it is about
	readFrom []byte // where the state was read, in JSON; empty where all is read from masters

	columns *columns // of a question in Feast's protocol, else nil

	// reading is of each entity for each plan.
	reading query.Reading
	// oldest is by plan the oldest moment that can be asked for, or reached.
	oldest []int64
	since  []*query.Completeness // by plan

	request request // points into what the parser or the arena has made
	parser  fastjson.Parser
	arena   fastjson.Arena
	body    []byte
	out     []byte
	most    int64 // bytes of out
	held
}

// bounds are those of a stretch of bytes.
type bounds struct{ from, to int }

// spans are stretches of bytes, one behind the other.
type spans struct {
	bytes []byte
	ends  []int
}

func (s *spans) reset() { s.bytes, s.ends = s.bytes[:0], s.ends[:0] }
func (s *spans) end()   { s.ends = append(s.ends, len(s.bytes)) }

// bounds are those of stretch i in bytes.
func (s *spans) bounds(i int) (from, to int) {
	if i > 0 {
		from = s.ends[i-1]
	}
	return from, s.ends[i]
}

var questions = sync.Pool{New: func() any { return new(question) }}

func newQuestion(now time.Time, b *budgets) *question {
	q := questions.Get().(*question)
	q.budgets = b
	q.now = now.UnixMilli()
	q.at = q.now
	return q
}

// free hands the question's memory on, what was read by a reader to that, unless it
// grew so large that it would be kept for nothing.
func (q *question) free(reader store.Reader) {
	reader.Recycle(q.reading.WindowStates())
	const mostBody, mostOut = 64 << 10, 256 << 10 // the parser keeps parsedSize times the body
	if cap(q.body) > mostBody || cap(q.out) > mostOut {
		return
	}
	// What was pointed to belongs to this question alone.
	clear(q.plans)
	q.reading.Reset(0)
	q.plans, q.sets, q.set, q.entities = q.plans[:0], q.sets[:0], q.set[:0], q.entities[:0]
	q.echoes.reset()
	q.texts.reset()
	q.members.reset()
	clear(q.asked)
	q.asked = q.asked[:0]
	q.damaged, q.damage, q.unavailable = 0, nil, 0
	q.index = nil
	q.pending, q.outcomes, q.columns = nil, q.outcomes[:0], nil
	q.wait, q.waited, q.readFrom = nil, q.waited[:0], q.readFrom[:0]
	q.applied, q.oldest = false, q.oldest[:0]
	q.body, q.out = q.body[:0], q.out[:0]
	q.request, q.client = request{}, nil
	q.arena.Reset()
	questions.Put(q)
}

// decode takes in what is asked.
func (q *question) decode(x *index, limits Limits) (err error) {
	q.most = limits.Answer
	r := &q.request
	if r.at != nil {
		if q.at, err = moment(r.at, q.now); err != nil {
			return err
		}
	}
	if err := q.choose(x, r.features, r.service, limits); err != nil {
		return err
	}
	if err := q.name(r.members, x, limits); err != nil {
		return err
	}
	if err := q.take(r.entities, limits); err != nil {
		return err
	}
	if r.waitFor != nil {
		if err := q.awaits(x, r.waitFor); err != nil {
			return err
		}
	}
	if r.pending == nil {
		return nil
	}
	return q.pend(x, r.pending, r.at != nil)
}

// given is nil for null, which many clients write for what is absent.
func given(v *fastjson.Value) *fastjson.Value {
	if v != nil && v.Type() == fastjson.TypeNull {
		return nil
	}
	return v
}

// parse is strict: fastjson, which finds the values quickly, would let pass
// numbers and escapes that are no JSON.
func (q *question) parse() (*fastjson.Value, error) {
	if !json.Valid(q.body) {
		return nil, q.malformed()
	}
	if !utf8.Valid(q.body) {
		return nil, reply.Errorf(reply.MalformedJSON, "the body is not UTF-8")
	}
	root, err := q.parser.ParseBytes(q.body)
	if err != nil { // of all that is valid, it refuses this alone
		return nil, reply.Errorf(reply.MalformedJSON, "the body is nested deeper than %d levels", fastjson.MaxDepth)
	}
	return root, nil
}

// malformed says what is wrong with a body that is not valid.
func (q *question) malformed() error {
	var ignored any
	err := json.Unmarshal(q.body, &ignored)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return reply.Errorf(reply.MalformedJSON, "the body is no JSON: %v, at byte %d", err, syntax.Offset)
	}
	return reply.Errorf(reply.MalformedJSON, "the body is no JSON: %v", err)
}

func duplicateKey(name, where string) *reply.Error {
	e := reply.Errorf(reply.DuplicateKey, "key %s stands twice in %s", reply.Quote(name), where)
	e.Key = name
	return e
}

// choose finds the features asked for, each once, in the order asked.
func (q *question) choose(x *index, names, service *fastjson.Value, limits Limits) error {
	if names != nil {
		list, err := names.Array()
		if err != nil {
			return wrongQuestion("features", "a list of names", names)
		}
		if len(list) > limits.Values {
			return tooMany(fmt.Sprintf("%d features", len(list)), 1, limits)
		}
		for _, v := range list {
			name, err := v.StringBytes()
			if err != nil {
				return wrongItem("features", "a list of names", v)
			}
			p, ok := x.plans[string(name)]
			if !ok {
				return x.unknownFeature(string(name))
			}
			if q.client != nil && !q.client.Scopes.Feature(p.services) {
				return q.forbidden(p)
			}
			q.add(p)
		}
	}
	if service != nil {
		name, err := service.StringBytes()
		if err != nil {
			return wrongQuestion("service", "a name", service)
		}
		plans, ok := x.services[string(name)]
		if !ok {
			return x.unknownService(string(name))
		}
		if q.client != nil && !q.client.Scopes.Service(string(name)) {
			return access.Forbidden("asking for the service "+string(name), "query or service:"+string(name), q.client)
		}
		for _, p := range plans {
			q.add(p)
		}
	}
	if len(q.plans) == 0 {
		return reply.Errorf(reply.MissingFeatures, `a question must name features or a service, such as "features": ["device_tx_7d"]`)
	}
	return nil
}

// forbidden refuses a feature that is in no service of the client's scopes.
func (q *question) forbidden(p *plan) error {
	wants := "query"
	for _, service := range p.services {
		wants += " or service:" + service
	}
	e := access.Forbidden("asking for the feature "+p.Name, wants, q.client)
	e.Feature = p.Name
	return e
}

func (q *question) add(p *plan) {
	if slices.Contains(q.plans, p) {
		return
	}
	set := slices.Index(q.sets, p.keys)
	if set < 0 {
		set = len(q.sets)
		q.sets = append(q.sets, p.keys)
	}
	q.plans, q.set = append(q.plans, p), append(q.set, set)
}

// take takes the entities asked about.
func (q *question) take(entities *fastjson.Value, limits Limits) error {
	if entities == nil {
		return reply.Errorf(reply.MissingEntities, `a question must have entities, such as "entities": [{"device_id": "d000001"}]`)
	}
	list, err := entities.Array()
	switch {
	case err != nil:
		return wrongQuestion("entities", "a list of objects", entities)
	case len(list) == 0:
		return reply.Errorf(reply.MissingEntities, "entities must not be empty")
	case len(list)*q.cost() > limits.Values:
		return q.tooMany(len(list), limits)
	}
	for i, v := range list {
		if v.Type() != fastjson.TypeObject {
			e := wrongItem("entities", "a list of objects", v)
			e.Entity = &i
			return e
		}
	}
	q.entities = append(q.entities, list...)
	return nil
}

// cost is how many values an entity takes: one for each member, one for each
// feature that is asked about none, and those of all members that the features
// may go through.
func (q *question) cost() int {
	n := q.answers()
	for _, p := range q.plans {
		n += p.fanOut
	}
	return n
}

// tooMany refuses what the features chosen cost for a number of entities.
func (q *question) tooMany(entities int, limits Limits) error {
	what := fmt.Sprintf("%d features", len(q.plans))
	if n := len(q.members.values); n > 0 {
		what += fmt.Sprintf(" with %d members", n)
	}
	if fanOut := q.cost() - q.answers(); fanOut > 0 {
		what += fmt.Sprintf(", which go through as many as %d entities more,", fanOut)
	}
	return tooMany(what, entities, limits)
}

func tooMany(what string, entities int, limits Limits) error {
	return reply.Errorf(reply.TooManyValues, "%s for %d entities are more than the %d values that one question may ask for", what, entities, limits.Values)
}

func wrongQuestion(key, want string, v *fastjson.Value) *reply.Error {
	e := reply.Errorf(reply.WrongType, "%s must be %s; %s is not", key, want, show(v))
	e.Key = key
	return e
}

func wrongItem(key, want string, v *fastjson.Value) *reply.Error {
	e := wrongQuestion(key, want, v)
	e.Message += " one"
	return e
}

// show shows a value in an error.
func show(v *fastjson.Value) string {
	switch v.Type() {
	case fastjson.TypeObject:
		return "an object"
	case fastjson.TypeArray:
		return "a list"
	case fastjson.TypeString:
		return reply.Quote(string(v.GetStringBytes()))
	default:
		short, dots := reply.Shorten(v.String()) // of a number, true, false or null
		return short + dots
	}
}
