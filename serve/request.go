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

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/value"
)

// body reads the question of a POST.
func (h *handler) body(q *question, w http.ResponseWriter, r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return errorf(UnsupportedEncoding, "the body must not be compressed; its Content-Encoding is %s", quote(encoding))
	}
	from := http.MaxBytesReader(w, r.Body, h.limits.Body)
	buffer := bytes.NewBuffer(q.body)
	_, err := buffer.ReadFrom(io.LimitReader(from, freeBody))
	if err == nil && buffer.Len() == freeBody {
		if err = h.queue(r.Context(), q, r.ContentLength); err == nil {
			_, err = buffer.ReadFrom(from)
		}
	}
	q.body = buffer.Bytes()
	var tooLarge *http.MaxBytesError
	var refusal *Error
	switch {
	case errors.As(err, &tooLarge):
		return errorf(BodyTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errAbandoned
	case err != nil:
		return errorf(UnreadableBody, "the body could not be read: %v", err)
	}
	return nil
}

// queue waits in line for the memory of a long body, of so many bytes or, where it
// is less than none, of as many as there may be.
func (h *handler) queue(ctx context.Context, q *question, bytes int64) error {
	ctx, cancel := context.WithTimeout(ctx, h.limits.Timeout)
	defer cancel()
	if bytes < 0 || bytes > h.limits.Body {
		bytes = h.limits.Body
	}
	return q.hold(ctx, receiving, 2*bytes) // the buffer doubles as it grows
}

// query reads the question of a GET. It is the same question, so it is written
// as one: values that are no JSON of themselves become strings, and what is
// wrong with them is found in one place.
func (h *handler) query(q *question, _ http.ResponseWriter, r *http.Request) error {
	x, name := h.index(), r.PathValue("name")
	p, ok := x.plans[name]
	if !ok {
		return x.unknownFeature(name)
	}
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errorf(MalformedQuery, "the query cannot be read: %v", err)
	}
	for _, parameter := range slices.Sorted(maps.Keys(parameters)) {
		values := parameters[parameter]
		if !utf8.ValidString(parameter) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return errorf(MalformedQuery, "the query is not UTF-8")
		}
		if !slices.Contains(p.parameters(), parameter) {
			return unknownParameter(p, parameter)
		}
		if len(values) > 1 && !p.isMember(parameter) {
			return duplicateKey(parameter, "the query")
		}
	}
	q.body = query.AppendString(append(q.body, `{"features":[`...), name)
	q.body = append(q.body, `],"entities":[{`...)
	first := true
	for i, by := range p.By {
		if !parameters.Has(by) {
			continue
		}
		if !first {
			q.body = append(q.body, ',')
		}
		first = false
		q.body = append(query.AppendString(q.body, by), ':')
		q.body = appendLiteral(q.body, parameters.Get(by), p.ByTypes[i] == value.String)
	}
	q.body = append(q.body, "}]"...)
	if parameters.Has(memberParameter) && p.isMember(memberParameter) {
		q.body = append(q.body, `,"members":[`...)
		for i, member := range parameters[memberParameter] {
			if i > 0 {
				q.body = append(q.body, ',')
			}
			q.body = appendLiteral(q.body, member, p.member.typ == value.String)
		}
		q.body = append(q.body, ']')
	}
	if parameters.Has("at") {
		q.body = appendLiteral(append(q.body, `,"at":`...), parameters.Get("at"), false)
	}
	if parameters.Has(waitParameter) && p.waits() {
		if q.body, err = appendWait(append(q.body, `,"wait_for":`...), parameters.Get(waitParameter)); err != nil {
			return err
		}
	}
	q.body = append(q.body, '}')
	return nil
}

func appendLiteral(dst []byte, text string, isString bool) []byte {
	if !isString && json.Valid([]byte(text)) {
		return append(dst, text...)
	}
	return query.AppendString(dst, text)
}

// memberParameter is the parameter that names a member, one or several times.
const memberParameter = "member"

// isMember says whether a parameter names a member; a key of that name would
// go before.
func (p *plan) isMember(parameter string) bool {
	return parameter == memberParameter && p.Membership() != aggregate.NoMembers && !slices.Contains(p.By, memberParameter)
}

// parameters are those that the feature takes.
func (p *plan) parameters() []string {
	known := slices.Clone(p.By)
	if p.isMember(memberParameter) {
		known = append(known, memberParameter)
	}
	known = append(known, "at")
	if p.waits() {
		known = append(known, waitParameter)
	}
	return known
}

func unknownParameter(p *plan, name string) error {
	known := p.parameters()
	e := errorf(UnknownKey, "feature %q has no parameter %s; it takes %s", p.Name, quote(name), strings.Join(known, ", "))
	e.Feature, e.Key, e.Nearest = p.Name, name, nearest(name, known)
	return e
}
