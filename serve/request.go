package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/value"
)

// request is what a client has sent. Each input format has a function that fills in the parts: readJSON, readQuery and
// readFeast.
type request struct {
	view    view
	body    []byte
	parts   []*fastjson.Value // by option; nil for a missing one. They point into memory of the parser or the arena.
	columns *columns          // of Feast's protocol, else nil
	parser  fastjson.Parser
	arena   fastjson.Arena
}

func (r *request) reset() {
	r.view, r.columns, r.body = view{}, nil, r.body[:0]
	clear(r.parts)
	r.arena.Reset()
}

// part finds a part by its name; nil for other names.
func (r *request) part(key string) **fastjson.Value {
	for i := range options {
		if options[i].key == key {
			return &r.parts[i]
		}
	}
	return nil
}

// parse is strict: fastjson, which finds the values quickly, would accept numbers and escapes that
// are not JSON.
func (r *request) parse() (*fastjson.Value, error) {
	if !json.Valid(r.body) {
		return nil, reply.Errorf(reply.MalformedJSON, "the body is not JSON: %s", reworded.JSON(r.body))
	}
	if !utf8.Valid(r.body) {
		return nil, reply.Errorf(reply.MalformedJSON, "the body is not UTF-8")
	}
	root, err := r.parser.ParseBytes(r.body)
	if err != nil { // the only valid JSON that it refuses
		return nil, reply.Errorf(reply.MalformedJSON, "the body is nested deeper than %d levels", fastjson.MaxDepth)
	}
	return root, nil
}

// readJSON reads a question in Weir's own format.
func (h *handler) readJSON(r *request) error {
	root, err := r.parse()
	if err != nil {
		return err
	}
	object, err := root.Object()
	if err != nil {
		return reply.Errorf(reply.WrongType, "a question must be an object; %s is not", reply.Show(root))
	}
	if e := reply.Fields(object, "a question", optionKeys, r.parts); e != nil {
		return e
	}
	return nil
}

// readBody reads the question of a POST.
func (h *handler) readBody(q *question, w http.ResponseWriter, r *http.Request) error {
	if e := reply.Compressed(r); e != nil {
		return e
	}
	from := http.MaxBytesReader(w, r.Body, h.Limits.Body)
	buffer := bytes.NewBuffer(q.request.body)
	_, err := buffer.ReadFrom(io.LimitReader(from, freeBody))
	if err == nil && buffer.Len() == freeBody {
		if err = h.queueForBody(r.Context(), q, r.ContentLength); err == nil {
			_, err = buffer.ReadFrom(from)
		}
	}
	q.request.body = buffer.Bytes()
	if _, refused := errors.AsType[*reply.Error](err); err == nil || refused {
		return err
	}
	return reply.Unread(r, err)
}

// queueForBody queues for the memory of a body of `bytes` bytes; a negative number means the greatest allowed size.
func (h *handler) queueForBody(ctx context.Context, q *question, bytes int64) error {
	ctx, cancel := context.WithTimeout(ctx, h.Limits.Timeout)
	defer cancel()
	if bytes < 0 || bytes > h.Limits.Body {
		bytes = h.Limits.Body
	}
	return q.held.hold(ctx, receiving, 2*bytes) // the buffer doubles as it grows
}

// readQuery reads the question of a GET. Values that are not JSON are strings; understand finds errors in them.
func (h *handler) readQuery(q *question, _ http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	p, err := q.request.viewOf(h).askable([]byte(name)) // before errors that name its keys
	if err != nil {
		return err
	}
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return reply.Errorf(reply.MalformedQuery, "the query cannot be read: %v", err)
	}
	for _, parameter := range slices.Sorted(maps.Keys(parameters)) {
		values := parameters[parameter]
		if !utf8.ValidString(parameter) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return reply.Errorf(reply.MalformedQuery, "the query is not UTF-8")
		}
		o := p.parameter(parameter)
		if o == nil && !slices.Contains(p.By, parameter) {
			return unknownParameter(p, parameter)
		}
		if len(values) > 1 && (o == nil || !o.repeated) {
			return reply.Duplicate(parameter, "the query")
		}
	}
	if err := reply.LostPlus(r.URL.RawQuery, p.isText); err != nil {
		return err.About(p.Name)
	}
	return q.request.fillIn(p, parameters)
}

// isText reports whether a parameter is a text: a key of the entity, or a member.
func (p *preparedFeature) isText(parameter string) bool {
	if key := slices.Index(p.By, parameter); key >= 0 {
		return p.ByTypes[key] == value.String
	}
	return parameter == "member" && p.hasMembers() && p.member.typ == value.String
}

// fillIn makes the parts from the parameters of a GET.
func (r *request) fillIn(p *preparedFeature, parameters url.Values) error {
	features, entities, entity := r.arena.NewArray(), r.arena.NewArray(), r.arena.NewObject()
	features.SetArrayItem(0, r.arena.NewString(p.Name))
	for i, by := range p.By {
		if parameters.Has(by) {
			v, err := r.literalOf(parameters.Get(by), p.ByTypes[i] == value.String)
			if err != nil {
				return err
			}
			entity.Set(by, v)
		}
	}
	entities.SetArrayItem(0, entity)
	*r.part("features"), *r.part("entities") = features, entities
	for i, o := range options {
		if p.parameter(o.parameter) == nil || !parameters.Has(o.parameter) {
			continue
		}
		v, err := o.parse(r, p, parameters[o.parameter])
		if err != nil {
			return err
		}
		r.parts[i] = reply.Given(v)
	}
	return nil
}

// literalOf returns the value of a parameter: JSON if it is valid, or else a string.
func (r *request) literalOf(text string, isString bool) (*fastjson.Value, error) {
	if isString || !json.Valid([]byte(text)) {
		if !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' }) {
			return r.arena.NewString(text), nil
		}
		text = string(query.AppendString(nil, text)) // fastjson would not escape like JSON
	}
	v, err := fastjson.Parse(text)
	if err != nil { // the only valid JSON that it refuses
		return nil, reply.Errorf(reply.MalformedQuery, "a parameter is nested deeper than %d levels", fastjson.MaxDepth)
	}
	return v, nil
}
