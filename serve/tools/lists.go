package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/operate/lists"
	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/reply"
)

const (
	defaultEntries = 100
	maxEntries     = 10_000
	maxChanges     = 1000
)

// List is the answer of GET /v1/lists/{name}.
type List struct {
	List    string        `json:"list"`
	Total   int           `json:"total"` // how many entries there are, or of the value
	Entries []lists.Entry `json:"entries"`
}

// Changed is the answer of POST /v1/lists/{name}.
type Changed struct {
	List    string `json:"list"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// changes is the body of POST /v1/lists/{name}.
type changes struct {
	Add    []json.RawMessage `json:"add"`
	Remove []json.RawMessage `json:"remove"`
}

// removed is an entry of the body, added one that is added.
type (
	removed struct {
		Value json.RawMessage `json:"value"`
		Why   string          `json:"why"`
	}
	added struct {
		removed
		Until string `json:"until"`
	}
)

// listNamed finds a list of the definitions.
func (t *Tools) listNamed(name string) (*features.Table, *reply.Error) {
	var known []string
	for _, list := range t.Registry().Tables {
		switch {
		case list.Name != name && list.List:
			known = append(known, list.Name)
		case list.Name == name && list.List:
			return list, nil
		case list.Name == name:
			return nil, reply.Errorf(reply.UnknownList, "%s is a table, whose rows are not written here, and no list", reply.Quote(name))
		}
	}
	return nil, reply.Unknown(reply.UnknownList, "list", name, known)
}

// AnswerList answers GET /v1/lists/{name}.
func (t *Tools) AnswerList(_ http.ResponseWriter, r *http.Request) ([]byte, *reply.Error) {
	list, refusal := t.listNamed(r.PathValue("name"))
	if refusal != nil {
		return nil, refusal
	}
	parameters, refusal := parametersOf(r.URL.RawQuery, "value", "limit")
	if refusal == nil {
		refusal = reply.LostPlus(r.URL.RawQuery, func(parameter string) bool { return parameter == "value" })
	}
	if refusal != nil {
		return nil, refusal
	}
	most, refusal := limitOf(parameters, defaultEntries, maxEntries)
	switch {
	case refusal != nil:
		return nil, refusal
	case !t.listing.TryLock():
		return nil, reply.Errorf(reply.Overloaded, "a list is being read for another request; ask again in some seconds")
	}
	defer t.listing.Unlock()
	access.LogRead(t.Logger, r, slog.Int("limit", most))
	contents, err := t.ListContents(list)
	if err != nil {
		return nil, reply.Errorf(reply.KafkaUnavailable, "%v", err)
	}
	entries := lists.Entries(contents, list, t.Now(), parameters["value"])
	answer := List{List: list.Name, Total: len(entries), Entries: append([]lists.Entry{}, entries[:min(most, len(entries))]...)}
	return reply.AppendJSON(nil, answer), nil
}

// ChangeList answers POST /v1/lists/{name}: it makes all changes of the body, or none.
func (t *Tools) ChangeList(w http.ResponseWriter, r *http.Request) ([]byte, *reply.Error) {
	client := access.Client(r.Context())
	if client == nil {
		return nil, reply.Errorf(reply.Forbidden, "lists keep who changed them: set api.tokens_file, api.oidc or api.tls.client_ca, or use weir list")
	}
	list, refusal := t.listNamed(r.PathValue("name"))
	if refusal != nil {
		return nil, refusal
	}
	body, refusal := t.body(w, r)
	if refusal != nil {
		return nil, refusal
	}
	c := changes{}
	refusal = decode(body, &c, "the body", map[string]string{"add": "a list", "remove": "a list"}, "add", "remove")
	if refusal == nil && len(c.Add)+len(c.Remove) == 0 {
		refusal = reply.Errorf(reply.MissingKey, "there is nothing to change: give entries to add or to remove")
	}
	if n := len(c.Add) + len(c.Remove); refusal == nil && n > maxChanges {
		refusal = reply.Errorf(reply.TooManyValues, "%d entries are more than the %d that one request may change", n, maxChanges)
	}
	var written []lists.Written
	if refusal == nil {
		written, refusal = t.written(list, cmp.Or(client.Name, "(a client without a name)"), &c)
	}
	if refusal != nil {
		return nil, refusal
	}
	access.LogChange(t.Logger, r, slog.Int("added", len(c.Add)), slog.Int("removed", len(c.Remove)))
	// Who hangs up does not leave a change half made.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), Limit)
	defer cancel()
	switch err := t.WriteList(ctx, list, written); {
	case errors.Is(err, lists.ErrTooLarge):
		return nil, reply.Errorf(reply.TooManyValues, "%v", err)
	case err != nil:
		t.Logger.Warn("a list cannot be changed", "list", list.Name, "error", err)
		return nil, reply.Errorf(reply.KafkaUnavailable, "list %s could not be changed: %v; send it again: either all of it counts by then, or nothing", list.Name, err)
	}
	return reply.AppendJSON(nil, Changed{list.Name, len(c.Add), len(c.Remove)}), nil
}

// written makes the records of changes, and says what is wrong with them.
func (t *Tools) written(list *features.Table, who string, c *changes) (all []lists.Written, refusal *reply.Error) {
	seen := map[string]string{}
	take := func(where string, raw json.RawMessage, e *added, remove bool) *reply.Error {
		text, refusal := textOf(where+".value", raw)
		if refusal != nil {
			return refusal
		}
		until, err := lists.ParseUntil(e.Until, t.Now())
		var w lists.Written
		if err == nil {
			w, err = lists.Record(list, lists.Entry{Value: text, Until: until, Who: who, Why: e.Why}, remove)
		}
		if err != nil {
			return reply.Errorf(reply.BadEntry, "%s: %v", where, err).At(where)
		}
		if first, ok := seen[string(w.Key)]; ok {
			return reply.Errorf(reply.BadEntry, "%s: %s is in %s too", where, reply.Quote(text), first).At(where)
		}
		seen[string(w.Key)] = where
		all = append(all, w)
		return nil
	}
	types := map[string]string{"until": "a string", "why": "a string"}
	for i, raw := range c.Add {
		where, e := fmt.Sprintf("add[%d]", i), added{}
		if refusal = decode(raw, &e, where, types, "value", "until", "why"); refusal == nil {
			refusal = take(where, e.Value, &e, false)
		}
		if refusal != nil {
			return nil, refusal
		}
	}
	for i, raw := range c.Remove {
		where, e := fmt.Sprintf("remove[%d]", i), added{}
		if refusal = decode(raw, &e.removed, where, types, "value", "why"); refusal == nil {
			refusal = take(where, e.Value, &e, true)
		}
		if refusal != nil {
			return nil, refusal
		}
	}
	return all, nil
}

// textOf reads a value of a list, a string or a number.
func textOf(where string, raw json.RawMessage) (string, *reply.Error) {
	var text string
	switch {
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return "", reply.Errorf(reply.MissingKey, "%s is missing", where).At(where)
	case json.Unmarshal(raw, &text) == nil:
		return text, nil
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return string(raw), nil
	}
	return "", reply.Errorf(reply.WrongType, "%s must be a string or a whole number", where).At(where)
}
