package serve

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// question is one question while it is answered. Its memory is reused, see newQuestion and free.
type question struct {
	client *credentials.Client // who asks; nil if no credentials are required

	now      int64  // milliseconds
	at       int64  // milliseconds
	present  int64  // the first moment that counts as the present, in milliseconds
	index    *index // nil until first used
	features []*preparedFeature
	// sets are the distinct key sets of the features. set is the index of each feature's key set.
	sets     []*keySet
	set      []int
	entities []*fastjson.Value

	// echoes are the entities as sent. texts are their texts: the text of entity e for set s is at e*len(sets)+s.
	echoes, texts spans
	lacks         []bool // like texts: a key is null, so there is nothing to ask
	members       members
	asked         []*features.Feature // by feature, with its members
	values        []*fastjson.Value   // of one entity, by set and key

	// first is, by entity, the first entity with the same texts, which may be itself. Only that one is answered, and
	// written is where its features are in out.
	first   []int
	written []bounds
	byHash  map[uint64]int // the first entity with texts of a hash
	literal []byte         // one value as sent

	// pending holds the mutations of events that are not yet on the bus; nil if there are none. outcomes are how these
	// were read.
	pending  *state.Batch
	outcomes []outcome

	// damaged counts the answers that damaged state prevented, and damage is the first error.
	damaged int
	// unavailable counts the answers that an unavailable master prevented.
	unavailable int
	damage      error

	wait      *wait     // for an event on the bus; nil for none
	waited    []byte    // its outcome, in JSON
	applied   bool      // the event is applied, as found at
	appliedAt time.Time // this moment

	outdated bool   // something was filled after the state was read
	readFrom []byte // where the state was read, in JSON; empty if all was read from masters

	columns *columns // for a question in Feast's protocol, else nil
	points  int      // of a timeline

	// reading has an answer for each feature of each entity. frames are the frames of the features that can be answered.
	reading   query.Reading
	frames    []framed
	coverages query.Coverages // of the answers
	// oldest is by feature the oldest moment that can be asked about, or answerable.
	oldest []int64
	since  []*query.Completeness // by feature

	request request // points into memory of the parser or the arena
	parser  fastjson.Parser
	arena   fastjson.Arena
	body    []byte
	out     []byte
	most    int64 // bytes of out
	held
}

// framed is a feature's frame of a query.Reading, and its key set.
type framed struct{ number, set int }

// bounds are the bounds of a range of bytes.
type bounds struct{ from, to int }

// spans are ranges of bytes, one after another.
type spans struct {
	bytes []byte
	ends  []int
}

func (s *spans) reset() { s.bytes, s.ends = s.bytes[:0], s.ends[:0] }
func (s *spans) end()   { s.ends = append(s.ends, len(s.bytes)) }

// bounds returns the bounds of range i in bytes.
func (s *spans) bounds(i int) (from, to int) {
	if i > 0 {
		from = s.ends[i-1]
	}
	return from, s.ends[i]
}

var questions = sync.Pool{New: func() any { return new(question) }}

func newQuestion(now time.Time, b *budgets) *question {
	q := questions.Get().(*question)
	q.budgets, q.inLine = b, 0
	q.now = now.UnixMilli()
	q.at, q.present = q.now, q.now
	return q
}

// free returns the question's memory for reuse, and window states to their reader, unless it is too large to keep.
func (q *question) free(reader store.Reader) {
	reader.Recycle(q.reading.WindowStates())
	const maxBody, maxOut = 64 << 10, 256 << 10 // the parser keeps parsedSize times the body
	if cap(q.body) > maxBody || cap(q.out) > maxOut {
		return
	}
	// Drop references to the question's data.
	clear(q.features)
	q.reading.Reset(0)
	q.features, q.sets, q.set, q.entities = q.features[:0], q.sets[:0], q.set[:0], q.entities[:0]
	q.echoes.reset()
	q.texts.reset()
	q.lacks = q.lacks[:0]
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

// decode reads the parts of the question.
func (q *question) decode(x *index, limits Limits) (err error) {
	q.most = limits.Answer
	r := &q.request
	if r.at != nil {
		if q.at, err = moment(r.at, q.now); err != nil {
			return err
		}
	}
	if err := q.readFeatures(x, r.features, r.service, limits); err != nil {
		return err
	}
	if err := q.readMembers(r.members, x, limits); err != nil {
		return err
	}
	if err := q.readEntities(r.entities, limits); err != nil {
		return err
	}
	if r.waitFor != nil {
		if err := q.readWaitFor(x, r.waitFor); err != nil {
			return err
		}
	}
	if r.pending == nil {
		return nil
	}
	return q.mapPending(x, r.pending, r.at != nil)
}

// given returns nil for null, which many clients write for absent values.
func given(v *fastjson.Value) *fastjson.Value {
	if v != nil && v.Type() == fastjson.TypeNull {
		return nil
	}
	return v
}

// parse is strict: fastjson, which finds the values quickly, would accept numbers and escapes that
// are not JSON.
func (q *question) parse() (*fastjson.Value, error) {
	if !json.Valid(q.body) {
		return nil, reply.Errorf(reply.MalformedJSON, "the body is not JSON: %s", reworded.JSON(q.body))
	}
	if !utf8.Valid(q.body) {
		return nil, reply.Errorf(reply.MalformedJSON, "the body is not UTF-8")
	}
	root, err := q.parser.ParseBytes(q.body)
	if err != nil { // the only valid JSON that it refuses
		return nil, reply.Errorf(reply.MalformedJSON, "the body is nested deeper than %d levels", fastjson.MaxDepth)
	}
	return root, nil
}

func duplicateKey(name, where string) *reply.Error {
	e := reply.Errorf(reply.DuplicateKey, "key %s appears twice in %s", reply.Quote(name), where)
	e.Key = name
	return e
}

// readFeatures finds the features of the question, each once, in order.
func (q *question) readFeatures(x *index, names, service *fastjson.Value, limits Limits) error {
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
			p, err := q.askable(x, string(name))
			if err != nil {
				return err
			}
			q.add(p)
		}
	}
	if service != nil {
		name, err := service.StringBytes()
		if err != nil {
			return wrongQuestion("service", "a name", service)
		}
		inService, ok := x.services[string(name)]
		if !ok {
			return x.unknownService(string(name), q.client)
		}
		if q.client != nil && !q.client.Scopes.Service(string(name)) {
			return access.Forbidden("asking for the service "+string(name), "query or service:"+string(name), q.client)
		}
		for _, p := range inService {
			q.add(p)
		}
	}
	if len(q.features) == 0 {
		return reply.Errorf(reply.MissingFeatures, `a question must name features or a service, such as "features": ["device_tx_7d"]`)
	}
	return nil
}

// askable returns a feature, if the client may ask for it.
func (q *question) askable(x *index, name string) (*preparedFeature, error) {
	p, ok := x.features[name]
	if !ok {
		return nil, x.unknownFeature(name, q.client)
	}
	if q.client != nil && !q.client.Scopes.Feature(p.services) {
		return nil, q.forbidden(p)
	}
	return p, nil
}

// forbidden refuses a feature that is in no service of the client's scopes.
func (q *question) forbidden(p *preparedFeature) error {
	wants := "query"
	for _, service := range p.services {
		wants += " or service:" + service
	}
	e := access.Forbidden("asking for the feature "+p.Name, wants, q.client)
	e.Feature = p.Name
	return e
}

func (q *question) add(p *preparedFeature) {
	if slices.Contains(q.features, p) {
		return
	}
	set := slices.Index(q.sets, p.keys)
	if set < 0 {
		set = len(q.sets)
		q.sets = append(q.sets, p.keys)
	}
	q.features, q.set = append(q.features, p), append(q.set, set)
}

// readEntities reads the entities of the question.
func (q *question) readEntities(entities *fastjson.Value, limits Limits) error {
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

// cost returns how many values an entity counts as: one for each member, one for each feature without members, and one
// for each further entity that multi-hop features may read.
func (q *question) cost() int {
	n := q.answers()
	for _, p := range q.features {
		n += p.fanOut
	}
	return n
}

// tooMany refuses a question whose features cost too much for its entities.
func (q *question) tooMany(entities int, limits Limits) error {
	what := fmt.Sprintf("%d features", len(q.features))
	if n := len(q.members.values); n > 0 {
		what += fmt.Sprintf(" with %d members", n)
	}
	if fanOut := q.cost() - q.answers(); fanOut > 0 {
		what += fmt.Sprintf(", which may read up to %d further entities,", fanOut)
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

// show formats a value for an error.
func show(v *fastjson.Value) string {
	switch v.Type() {
	case fastjson.TypeObject:
		return "an object"
	case fastjson.TypeArray:
		return "a list"
	case fastjson.TypeString:
		return reply.Quote(string(v.GetStringBytes()))
	default:
		short, dots := reply.Shorten(v.String()) // a number, true, false or null
		return short + dots
	}
}
