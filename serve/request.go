package serve

import (
	"bytes"
	"cmp"
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

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/value"
)

// request holds the parts of a question. Each input format has a function that fills it in: readJSON, readQuery
// and readFeast. A missing part is nil.
type request struct {
	features, service, entities, members, at, pending, waitFor *fastjson.Value
}

// requestKeys are the names of the parts.
var requestKeys = []string{"features", "service", "entities", "members", "at", "pending", "wait_for"}

// part finds a part by its name; nil for other names.
func (r *request) part(key string) **fastjson.Value {
	switch key {
	case "features":
		return &r.features
	case "service":
		return &r.service
	case "entities":
		return &r.entities
	case "members":
		return &r.members
	case "at":
		return &r.at
	case "pending":
		return &r.pending
	case "wait_for":
		return &r.waitFor
	}
	return nil
}

// readJSON reads a question in Weir's own format.
func (h *handler) readJSON(q *question) error {
	root, err := q.parse()
	if err != nil {
		return err
	}
	object, err := root.Object()
	if err != nil {
		return reply.Errorf(reply.WrongType, "a question must be an object; %s is not", show(root))
	}
	object.Visit(func(k []byte, v *fastjson.Value) {
		if err != nil {
			return
		}
		part := q.request.part(string(k))
		switch {
		case part == nil:
			err = unknownKey(string(k))
		case *part != nil:
			err = duplicateKey(string(k), "a question")
		default:
			*part = v
		}
	})
	for _, key := range requestKeys {
		part := q.request.part(key)
		*part = given(*part)
	}
	return err
}

func unknownKey(name string) error {
	last := len(requestKeys) - 1
	e := reply.Errorf(reply.UnknownKey, "a question has no key %s; its keys are %s and %s", reply.Quote(name), strings.Join(requestKeys[:last], ", "), requestKeys[last])
	e.Key, e.Nearest = name, reply.Nearest(name, requestKeys)
	return e
}

// readBody reads the question of a POST.
func (h *handler) readBody(q *question, w http.ResponseWriter, r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return reply.Errorf(reply.UnsupportedEncoding, "the body must not be compressed; its Content-Encoding is %s", reply.Quote(encoding))
	}
	from := http.MaxBytesReader(w, r.Body, h.Limits.Body)
	buffer := bytes.NewBuffer(q.body)
	_, err := buffer.ReadFrom(io.LimitReader(from, freeBody))
	if err == nil && buffer.Len() == freeBody {
		if err = h.queueForBody(r.Context(), q, r.ContentLength); err == nil {
			_, err = buffer.ReadFrom(from)
		}
	}
	q.body = buffer.Bytes()
	var tooLarge *http.MaxBytesError
	var refusal *reply.Error
	switch {
	case errors.As(err, &tooLarge):
		return reply.Errorf(reply.BodyTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	case errors.As(err, &refusal):
		return refusal
	case err != nil:
		return reply.Unread(r, err)
	}
	return nil
}

// queueForBody queues for the memory of a body of `bytes` bytes; a negative number means the greatest allowed size.
func (h *handler) queueForBody(ctx context.Context, q *question, bytes int64) error {
	ctx, cancel := context.WithTimeout(ctx, h.Limits.Timeout)
	defer cancel()
	if bytes < 0 || bytes > h.Limits.Body {
		bytes = h.Limits.Body
	}
	return q.hold(ctx, receiving, 2*bytes) // the buffer doubles as it grows
}

// readQuery reads the question of a GET. Values that are not JSON are strings; decode finds errors in them.
func (h *handler) readQuery(q *question, _ http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	p, err := q.askable(q.indexFor(h), name) // before errors that name its keys
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
		if !slices.Contains(p.parameters(), parameter) {
			return unknownParameter(p, parameter)
		}
		if len(values) > 1 && !p.isMember(parameter) {
			return duplicateKey(parameter, "the query")
		}
	}
	if err := p.lostPlus(r.URL.RawQuery); err != nil {
		return err
	}
	return q.fillIn(p, parameters)
}

// lostPlus refuses a text whose first byte is a + before a digit, as of a phone number: it means a space in a URL, and
// nothing would be found.
func (p *preparedFeature) lostPlus(query string) error {
	for pair := range strings.SplitSeq(query, "&") {
		name, text, _ := strings.Cut(pair, "=")
		if len(text) < 2 || text[0] != '+' || text[1] < '0' || text[1] > '9' {
			continue
		}
		name, _ = url.QueryUnescape(name) // it has been read before
		key := slices.Index(p.By, name)
		if key >= 0 && p.ByTypes[key] == value.String || key < 0 && p.isMember(name) && p.member.typ == value.String {
			e := reply.Errorf(reply.MalformedQuery, "parameter %s begins with a space: in a URL + is written %%2B, and a space %%20", reply.Quote(name))
			e.Feature, e.Key = p.Name, name
			return e
		}
	}
	return nil
}

// fillIn makes the request from the parameters of a GET.
func (q *question) fillIn(p *preparedFeature, parameters url.Values) (err error) {
	literal := func(text string, isString bool) *fastjson.Value {
		v, failed := q.literalOf(text, isString)
		err = cmp.Or(err, failed)
		return v
	}
	r := &q.request
	r.features, r.entities = q.arena.NewArray(), q.arena.NewArray()
	r.features.SetArrayItem(0, q.arena.NewString(p.Name))
	entity := q.arena.NewObject()
	for i, by := range p.By {
		if parameters.Has(by) {
			entity.Set(by, literal(parameters.Get(by), p.ByTypes[i] == value.String))
		}
	}
	r.entities.SetArrayItem(0, entity)
	if parameters.Has(memberParameter) && p.isMember(memberParameter) {
		r.members = q.arena.NewArray()
		for i, member := range parameters[memberParameter] {
			r.members.SetArrayItem(i, literal(member, p.member.typ == value.String))
		}
	}
	if parameters.Has(momentParameter) && p.takesMoment() {
		r.at = given(literal(parameters.Get(momentParameter), false))
	}
	if parameters.Has(waitParameter) && p.waits() {
		parts := strings.Split(parameters.Get(waitParameter), "/") // topic names contain no slash
		if len(parts) != 3 {
			return badWait(parameters.Get(waitParameter))
		}
		r.waitFor = q.arena.NewObject()
		r.waitFor.Set("topic", q.arena.NewString(parts[0]))
		r.waitFor.Set("partition", literal(parts[1], false))
		r.waitFor.Set("offset", literal(parts[2], false))
	}
	return err
}

// literalOf returns the value of a parameter: JSON if it is valid, or else a string.
func (q *question) literalOf(text string, isString bool) (*fastjson.Value, error) {
	if isString || !json.Valid([]byte(text)) {
		if !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
			return q.arena.NewString(text), nil
		}
		text = string(query.AppendString(nil, text)) // fastjson would not escape like JSON
	}
	v, err := fastjson.Parse(text)
	if err != nil { // the only valid JSON that it refuses
		return nil, reply.Errorf(reply.MalformedQuery, "a parameter is nested deeper than %d levels", fastjson.MaxDepth)
	}
	return v, nil
}

// memberParameter is the parameter that names a member; it may be repeated.
const memberParameter = "member"

// isMember reports whether a parameter names a member; a key with that name takes precedence.
func (p *preparedFeature) isMember(parameter string) bool {
	return parameter == memberParameter && p.membership != aggregate.NoMembers && !slices.Contains(p.By, memberParameter)
}

// momentParameter is the parameter for the moment.
const momentParameter = "at"

// takesMoment reports whether the feature takes the parameter; a key with that name takes precedence.
func (p *preparedFeature) takesMoment() bool { return !slices.Contains(p.By, momentParameter) }

// parameters returns the parameters that the feature takes.
func (p *preparedFeature) parameters() []string {
	known := slices.Clone(p.By)
	if p.isMember(memberParameter) {
		known = append(known, memberParameter)
	}
	if p.takesMoment() {
		known = append(known, momentParameter)
	}
	if p.waits() {
		known = append(known, waitParameter)
	}
	return known
}

func unknownParameter(p *preparedFeature, name string) error {
	known := p.parameters()
	e := reply.Errorf(reply.UnknownKey, "feature %q has no parameter %s; it takes %s", p.Name, reply.Quote(name), strings.Join(known, ", "))
	e.Feature, e.Key, e.Nearest = p.Name, name, reply.Nearest(name, known)
	return e
}
