package serve

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// feastQuestion is a question in Feast's protocol.
type feastQuestion struct {
	features         []string // "view:feature", or names of features in Weir
	featureService   string
	entities         map[string][]*fastjson.Value // a column for each key
	fullFeatureNames bool
}

// columns holds what Feast's answer format needs from the question.
type columns struct {
	keys   []string
	values [][]*fastjson.Value // by key, for all entities
	echoes [][][]byte          // the same as they were sent
	// labels are the names of the features' columns, names the features in them.
	labels, names []string
	// events are, by stream, the events in hand, one for each entity; see eventColumn.
	events map[string][]*record.Event
}

// eventColumn returns the name of the column with a field of the event in hand: what Feast's on-demand views call request data.
func eventColumn(field string) string { return expr.EventName + "." + field }

// readFeast reads a question in Feast's protocol.
func (h *handler) readFeast(r *request) error {
	root, err := r.parse()
	if err != nil {
		return err
	}
	asked, err := parseFeast(root)
	if err != nil {
		return err
	}
	c, x := &columns{}, r.viewOf(h)
	if err := c.readFeatures(asked, x); err != nil {
		return err
	}
	n, err := c.readEntities(asked.entities)
	if err != nil {
		return err
	}
	if n > h.Limits.Values { // before objects are made
		return reply.TooMany(fmt.Sprintf("%d features", len(c.names)), n, h.Limits.Values)
	}
	r.columns = c
	c.fillIn(r, x, n)
	return nil
}

// parseFeast parses a question. Unknown keys are skipped, as Feast's own server does: later clients
// may send some.
func parseFeast(root *fastjson.Value) (*feastQuestion, error) {
	object, err := root.Object()
	if err != nil {
		return nil, reply.Errorf(reply.WrongType, "a question must be an object; %s is not", reply.Show(root))
	}
	asked, seen := &feastQuestion{}, map[string]bool{}
	object.Visit(func(k []byte, v *fastjson.Value) {
		key := string(k)
		switch {
		case err != nil:
		case seen[key]:
			err = reply.Duplicate(key, "a question")
		default:
			seen[key] = true
			if reply.Given(v) != nil {
				err = asked.read(key, v)
			}
		}
	})
	return asked, err
}

// read reads the value of one key.
func (asked *feastQuestion) read(key string, v *fastjson.Value) error {
	switch key {
	case "features":
		list, err := v.Array()
		if err != nil {
			return reply.Wrong(key, "a list of names", v)
		}
		for _, item := range list {
			name, err := item.StringBytes()
			if err != nil {
				return reply.WrongItem(key, "a list of names", item)
			}
			asked.features = append(asked.features, string(name))
		}
	case "feature_service":
		name, err := v.StringBytes()
		if err != nil {
			return reply.Wrong(key, "a name", v)
		}
		asked.featureService = string(name)
	case "entities":
		return asked.readEntities(v)
	case "full_feature_names":
		full, err := v.Bool()
		if err != nil {
			return reply.Wrong(key, "true or false", v)
		}
		asked.fullFeatureNames = full
	}
	return nil
}

// readEntities reads the columns.
func (asked *feastQuestion) readEntities(v *fastjson.Value) error {
	const want = "an object with a list of values for each key"
	object, err := v.Object()
	if err != nil {
		return reply.Wrong("entities", want, v)
	}
	asked.entities = map[string][]*fastjson.Value{}
	object.Visit(func(k []byte, column *fastjson.Value) {
		key := string(k)
		_, twice := asked.entities[key]
		switch {
		case err != nil:
		case twice:
			err = reply.Duplicate(key, "entities")
		case column.Type() != fastjson.TypeArray:
			err = reply.WrongItem("entities", want, column)
		default:
			asked.entities[key] = column.GetArray()
		}
	})
	return err
}

// readFeatures finds the features that a client asks for. A service takes precedence, as in Feast.
func (c *columns) readFeatures(asked *feastQuestion, x view) error {
	if name := asked.featureService; name != "" {
		inService, err := x.askableService(name) // before errors that name its features
		if err != nil {
			return err
		}
		for _, p := range inService {
			c.labels, c.names = append(c.labels, p.Name), append(c.names, p.Name)
		}
	} else {
		for _, reference := range asked.features {
			view, name, found := strings.Cut(reference, ":")
			if !found {
				view, name = "", reference
			}
			full := view + "__" + name // Feast's full name of a feature of a view
			label := name
			if found && asked.fullFeatureNames {
				label = full
			}
			if _, ok := x.features[full]; ok && found {
				name = full
			} else if _, ok := x.features[name]; !ok {
				return x.unknownFeature(name)
			}
			c.labels, c.names = append(c.labels, label), append(c.names, name)
		}
	}
	c.keys = slices.Sorted(maps.Keys(asked.entities))
	seen := map[string]bool{}
	for _, label := range slices.Concat(c.keys, c.labels) {
		if seen[label] {
			e := reply.Duplicate(label, "the answer")
			e.Message += "; full_feature_names tells features of different views apart"
			return e
		}
		seen[label] = true
	}
	return nil
}

// readEntities reads the columns of the entities, and counts the entities.
func (c *columns) readEntities(entities map[string][]*fastjson.Value) (n int, err error) {
	for i, key := range c.keys {
		values := entities[key]
		if i > 0 && len(values) != n {
			return 0, reply.Errorf(reply.WrongType, "the lists of entities must be equally long; %s has %d values, but %s has %d",
				reply.Quote(c.keys[0]), n, reply.Quote(key), len(values)).At("entities")
		}
		n = len(values)
		echoes := make([][]byte, n)
		for i, v := range values { // before fastjson unescapes what is read
			echoes[i] = v.MarshalTo(nil)
		}
		c.values, c.echoes = append(c.values, values), append(c.echoes, echoes)
	}
	return n, nil
}

// fillIn makes the request for n entities, with the keys that its features need.
func (c *columns) fillIn(r *request, x view, n int) {
	needed, features, entities := map[string]bool{}, r.arena.NewArray(), r.arena.NewArray()
	for i, name := range c.names {
		features.SetArrayItem(i, r.arena.NewString(name))
		for _, by := range x.features[name].By {
			needed[by] = true
		}
	}
	for e := range n {
		entity := r.arena.NewObject()
		for i, key := range c.keys {
			if needed[key] {
				entity.Set(key, c.values[i][e])
			}
		}
		entities.SetArrayItem(e, entity)
	}
	*r.part("features"), *r.part("entities") = features, entities
}

// readEvents reads the events in hand of the features that are asked for, as far as the question has columns for their fields.
func (c *columns) readEvents(q *asked) error {
	read := map[*record.Field]bool{}
	for _, p := range q.features {
		for _, i := range p.OfEvent() {
			field := &p.InHand.Fields[i]
			at := slices.Index(c.keys, eventColumn(field.Name))
			if at < 0 || field.Type == value.Location || read[field] {
				continue
			}
			read[field] = true
			if err := c.readField(q, p.InHand, i, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// readField reads a field of the events in hand of a stream from a column.
func (c *columns) readField(q *asked, s *record.Stream, field, column int) error {
	events := c.events[s.Name]
	if events == nil {
		for range c.echoes[column] {
			events = append(events, &record.Event{Stream: s, Time: q.at, Now: q.now, Values: make([]value.Value, len(s.Fields))})
		}
		if c.events == nil {
			c.events = map[string][]*record.Event{}
		}
		c.events[s.Name] = events
	}
	of := key{c.keys[column], s.Fields[field].Type, s.Fields[field].Scale}
	for e, literal := range c.echoes[column] {
		v, ok := valueOf(literal, of)
		if sent := c.values[column][e]; !ok && reply.Given(sent) != nil {
			return reply.Errorf(reply.WrongType, "%q of entity %d must be %s; %s is not%s", of.name, e, of.want(), reply.Show(sent), of.lostPlus(sent)).
				At(of.name).InEntity(e)
		}
		if ok {
			events[e].Values[field] = v
		}
	}
	return nil
}

// inHand returns the event in hand of an entity for a feature; none if the question lacks a column of it.
func (c *columns) inHand(e int, p *preparedFeature) []*record.Event {
	for _, i := range p.OfEvent() {
		if f := &p.InHand.Fields[i]; f.Type == value.Location || !slices.Contains(c.keys, eventColumn(f.Name)) {
			return nil
		}
	}
	return c.events[p.InHand.Name][e : e+1]
}

var feastColumns = codec{(*handler).readFeast, (*found).addReads, (*answer).encodeColumns, failFeast}

// feastStatuses maps statuses to names in Feast's protocol, which has only four: its clients fail
// on others.
var feastStatuses = map[query.Status]string{
	query.Present:   "PRESENT",
	query.NullValue: "NULL_VALUE",
	query.NotFound:  "NOT_FOUND",
	// Values that cannot be relied on as they are: see appendFeast.
	query.Incomplete:    "OUTSIDE_MAX_AGE",
	query.LaterEvents:   "OUTSIDE_MAX_AGE",
	query.NoEvent:       "OUTSIDE_MAX_AGE",
	query.OutsideMaxAge: "OUTSIDE_MAX_AGE",
	// There is no value, for a reason outside the entity.
	query.Damaged:     "OUTSIDE_MAX_AGE",
	query.Unavailable: "OUTSIDE_MAX_AGE",
}

// appendFeast appends the value of an answer, or null if only its status tells how far it can be relied on: Feast's
// to_dict and to_df show every value without its status.
func appendFeast(dst []byte, a *query.Answer) []byte {
	if a.Status == query.Incomplete || a.Status == query.LaterEvents {
		return append(dst, "null"...)
	}
	return a.AppendValue(dst)
}

// partialSince returns since when an answer is complete, state.MinTime if it is complete as a whole.
func partialSince(a *query.Answer) int64 {
	if a.Status != query.Incomplete {
		return state.MinTime
	}
	return a.CompleteSince
}

// encodeColumns writes the response like Feast's server: columns of the keys and then of the features, over the
// entities. The event timestamp of a value is the end of its coverage.
func (w *answer) encodeColumns(ctx context.Context) error {
	q := w.asked
	byFeature := make([]column, len(q.features))
	var value []byte
	size := 0
	var a query.Answer
	for e, first := range q.entities.first {
		for i := range q.features {
			c := &byFeature[i]
			before := c.size()
			if first != e {
				c.repeat(first)
			} else {
				w.next(&a, e, i)
				value = appendFeast(value[:0], &a)
				c.add(value, a.Status, a.To, partialSince(&a))
			}
			size += c.size() - before
			if err := w.fits(ctx, size); err != nil {
				return err
			}
		}
	}
	c := q.columns
	out := append(w.out, `{"metadata":{"feature_names":[`...)
	for i, name := range slices.Concat(c.keys, c.labels) {
		if i > 0 {
			out = append(out, ',')
		}
		out = query.AppendString(out, name)
	}
	out = append(append(out, ']'), w.found.readFrom...)
	out = append(out, `},"results":[`...)
	for i, values := range c.echoes {
		if i > 0 {
			out = append(out, ',')
		}
		var key column
		for _, v := range values {
			key.add(v, query.Present, q.at, state.MinTime)
		}
		out = key.append(out)
		if err := w.fits(ctx, len(out)); err != nil {
			return err
		}
	}
	for _, name := range c.names {
		i := slices.IndexFunc(q.features, func(p *preparedFeature) bool { return p.Name == name })
		out = byFeature[i].append(append(out, ','))
		if err := w.fits(ctx, len(out)); err != nil {
			return err
		}
	}
	w.out = append(out, "]}\n"...)
	return nil
}

// feastErrors are the exceptions that Feast's clients raise for some codes; FeastError for others.
var feastErrors = map[reply.Code]string{
	reply.UnknownService:  "FeatureServiceNotFoundException",
	reply.UnknownFeature:  "FeatureViewNotFoundException",
	reply.MissingKey:      "RequestDataNotFoundInEntityRowsException",
	reply.MissingEntities: "RequestDataNotFoundInEntityRowsException",
	reply.DuplicateKey:    "FeatureNameCollisionError",
}

// failFeast writes an error in the form that Feast's clients raise: a JSON string with the JSON of an exception.
func failFeast(w http.ResponseWriter, e *reply.Error) {
	class, ok := feastErrors[e.Code]
	if !ok {
		class = "FeastError"
	}
	detail := reply.AppendJSON(nil, struct {
		Module  string     `json:"module"`
		Class   string     `json:"class"`
		Message string     `json:"message"`
		Code    reply.Code `json:"code"`
	}{"feast.errors", class, e.Message, e.Code})
	reply.FailWith(w, e.Status, append(query.AppendString(nil, strings.TrimSpace(string(detail))), '\n'))
}
