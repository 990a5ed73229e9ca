package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
)

// feastQuestion is a question in Feast's protocol. Other keys that its clients
// may send are passed over, as Feast's own server does.
type feastQuestion struct {
	Features         []string                     `json:"features"` // "view:feature", or features as Weir has them
	FeatureService   string                       `json:"feature_service"`
	Entities         map[string][]json.RawMessage `json:"entities"` // a column for each key
	FullFeatureNames bool                         `json:"full_feature_names"`
}

// columns is what Feast's form of an answer needs to know of its question.
type columns struct {
	keys   []string
	values [][]json.RawMessage // by key, of all entities
	// labels are what the columns of features are called, names the features
	// that they hold.
	labels, names []string
}

// feast reads a question in Feast's protocol and writes it as one of Weir's.
func (h *handler) feast(q *question, w http.ResponseWriter, r *http.Request) error {
	if err := h.body(q, w, r); err != nil {
		return err
	}
	if _, err := q.parse(); err != nil {
		return err
	}
	var asked feastQuestion
	if err := json.Unmarshal(q.body, &asked); err != nil {
		return wrongFeast(err)
	}
	c, x := &columns{}, h.index()
	if err := c.choose(&asked, x); err != nil {
		return err
	}
	n, err := c.take(asked.Entities)
	if err != nil {
		return err
	}
	if n > h.limits.Values { // before they are written out
		return tooMany(fmt.Sprintf("%d features", len(c.names)), n, h.limits)
	}
	q.columns = c
	q.body = c.appendQuestion(q.body[:0], x, n)
	return nil
}

// wrongFeast says what is of the wrong type.
func wrongFeast(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	key, _, _ := strings.Cut(wrong.Field, ".")
	want, ok := map[string]string{
		"features": "a list of names", "feature_service": "a name",
		"entities": "an object with a list of values for each key", "full_feature_names": "true or false",
	}[key]
	if !ok {
		return errorf(WrongType, "a question must be an object; a JSON %s is not", wrong.Value)
	}
	e := errorf(WrongType, "%s must be %s; it holds a JSON %s", key, want, wrong.Value)
	e.Key = key
	return e
}

// choose finds the features asked for. A service goes before, as it does at
// Feast's.
func (c *columns) choose(asked *feastQuestion, x *index) error {
	if name := asked.FeatureService; name != "" {
		plans, ok := x.services[name]
		if !ok {
			return x.unknownService(name)
		}
		for _, p := range plans {
			c.labels, c.names = append(c.labels, p.Name), append(c.names, p.Name)
		}
	} else {
		for _, reference := range asked.Features {
			view, name, found := strings.Cut(reference, ":")
			if !found {
				view, name = "", reference
			}
			full := view + "__" + name // as Feast names a feature of a view in full
			label := name
			if found && asked.FullFeatureNames {
				label = full
			}
			if _, ok := x.plans[full]; ok && found {
				name = full
			} else if _, ok := x.plans[name]; !ok {
				return x.unknownFeature(name)
			}
			c.labels, c.names = append(c.labels, label), append(c.names, name)
		}
	}
	c.keys = slices.Sorted(maps.Keys(asked.Entities))
	seen := map[string]bool{}
	for _, label := range slices.Concat(c.keys, c.labels) {
		if seen[label] {
			e := duplicateKey(label, "the answer")
			e.Message += "; full_feature_names tells features of different views apart"
			return e
		}
		seen[label] = true
	}
	return nil
}

// take takes the columns of the entities, and counts these.
func (c *columns) take(entities map[string][]json.RawMessage) (n int, err error) {
	for i, key := range c.keys {
		values := entities[key]
		if i > 0 && len(values) != n {
			e := errorf(WrongType, "the lists of entities must be equally long; %s has %d values, but %s has %d",
				quote(c.keys[0]), n, quote(key), len(values))
			e.Key = "entities"
			return 0, e
		}
		n = len(values)
		c.values = append(c.values, values)
	}
	return n, nil
}

// appendQuestion writes the question for n entities, with the keys that its
// features need.
func (c *columns) appendQuestion(dst []byte, x *index, n int) []byte {
	needed := map[string]bool{}
	dst = append(dst, `{"features":[`...)
	for i, name := range c.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = features.AppendString(dst, name)
		for _, by := range x.plans[name].By {
			needed[by] = true
		}
	}
	dst = append(dst, `],"entities":[`...)
	for e := range n {
		if e > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		first := true
		for i, key := range c.keys {
			if !needed[key] {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(features.AppendString(dst, key), ':')
			dst = append(dst, c.values[i][e]...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

var feastColumns = form{answerIn(encodeColumns), failFeast}

// column is the answers of one feature, or the values of one key: in JSON,
// their lists but for the brackets.
type column struct{ values, statuses, times []byte }

func (c *column) add(value []byte, status features.Status, at int64) {
	if c.values != nil {
		c.values, c.statuses, c.times = append(c.values, ','), append(c.statuses, ','), append(c.times, ',')
	}
	c.values = append(c.values, value...)
	c.statuses = features.AppendString(c.statuses, string(status))
	// Always three digits behind the point: not every Python reads others.
	c.times = time.UnixMilli(at).UTC().AppendFormat(c.times, `"2006-01-02T15:04:05.000Z"`)
}

func (c *column) size() int { return len(c.values) + len(c.statuses) + len(c.times) }

// append writes the column as one of Feast's results.
func (c *column) append(dst []byte) []byte {
	dst = append(append(dst, `{"values":[`...), c.values...)
	dst = append(append(dst, `],"statuses":[`...), c.statuses...)
	return append(append(append(dst, `],"event_timestamps":[`...), c.times...), "]}"...)
}

// encodeColumns writes the response as Feast's server does: columns of the keys
// and then of the features, over the entities. A value's event timestamp is up
// to when it counts.
func encodeColumns(q *question, _ *kinds.History) error {
	byPlan := make([]column, len(q.plans))
	var value []byte
	size := 0
	for range q.entities {
		for i := range q.plans {
			a, err := q.next(i)
			if err != nil {
				return err
			}
			value = a.AppendValue(value[:0])
			before := byPlan[i].size()
			byPlan[i].add(value, a.Status, a.To)
			size += byPlan[i].size() - before
			if err := q.fits(size); err != nil {
				return err
			}
		}
	}
	c := q.columns
	out := append(q.out, `{"metadata":{"feature_names":[`...)
	for i, name := range slices.Concat(c.keys, c.labels) {
		if i > 0 {
			out = append(out, ',')
		}
		out = features.AppendString(out, name)
	}
	out = append(out, `]},"results":[`...)
	for i, values := range c.values {
		if i > 0 {
			out = append(out, ',')
		}
		var key column
		for _, v := range values {
			key.add(v, features.Present, q.at)
		}
		out = key.append(out)
		if err := q.fits(len(out)); err != nil {
			return err
		}
	}
	for _, name := range c.names {
		i := slices.IndexFunc(q.plans, func(p *plan) bool { return p.Name == name })
		out = byPlan[i].append(append(out, ','))
		if err := q.fits(len(out)); err != nil {
			return err
		}
	}
	q.out = append(out, "]}\n"...)
	return nil
}

// feastErrors are the exceptions that Feast's clients raise for some codes;
// its FeastError for others.
var feastErrors = map[Code]string{
	UnknownService:  "FeatureServiceNotFoundException",
	UnknownFeature:  "FeatureViewNotFoundException",
	MissingKey:      "RequestDataNotFoundInEntityRowsException",
	MissingEntities: "RequestDataNotFoundInEntityRowsException",
	DuplicateKey:    "FeatureNameCollisionError",
}

// failFeast writes an error as Feast's clients raise it: as a JSON string that
// holds the JSON of an exception.
func failFeast(w http.ResponseWriter, e *Error) {
	class, ok := feastErrors[e.Code]
	if !ok {
		class = "FeastError"
	}
	detail := appendJSON(nil, struct {
		Module  string `json:"module"`
		Class   string `json:"class"`
		Message string `json:"message"`
		Code    Code   `json:"code"`
	}{"feast.errors", class, e.Message, e.Code})
	failWith(w, e.Status, append(features.AppendString(nil, strings.TrimSpace(string(detail))), '\n'))
}
