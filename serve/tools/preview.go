package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/operate/preview"
	"github.com/weir-stream/weir/serve/reply"
)

// maxPreview bounds the bytes of a preview's answer.
const maxPreview = 4 << 20

const (
	defaultFile    = "new.yaml"
	defaultMinutes = 10
	maxMinutes     = 60
)

// draft is the body of POST /v1/preview: a file of definitions. A null is the same as an absent
// member.
type draft struct {
	File    *string `json:"file"`
	Text    *string `json:"text"`
	Minutes *int    `json:"minutes"`
}

// Preview is the answer of POST /v1/preview.
type Preview struct {
	// Findings are all mistakes in the definitions with the file; there is a preview only without
	// any.
	Findings []definition.Finding `json:"findings"`
	// Features are those that the file defines.
	Features []string        `json:"features"`
	Preview  *preview.Report `json:"preview,omitempty"`
	// NoPreview says why there is none although the definitions are right.
	NoPreview string `json:"no_preview,omitempty"`
}

// ServePreview answers POST /v1/preview: it checks a file together with the definitions in use, in place
// of the file of the same name if there is one, and asks its features on the last minutes of their
// topics.
func (t *Tools) ServePreview(w http.ResponseWriter, r *http.Request) {
	d, refusal := t.draft(w, r)
	if refusal != nil {
		reply.Fail(w, refusal)
		return
	}
	if !t.previewing.TryLock() {
		reply.Fail(w, reply.Errorf(reply.Overloaded, "another preview is under way; ask again in some seconds"))
		return
	}
	defer t.previewing.Unlock()
	answer := reply.AppendJSON(nil, t.preview(r.Context(), d))
	if r.Context().Err() != nil { // the preview may have ended early
		reply.Fail(w, reply.HungUp())
		return
	}
	if len(answer) > maxPreview {
		reply.Fail(w, reply.Errorf(reply.AnswerTooLarge, "the preview has more than %d bytes; preview fewer features at a time", maxPreview))
		return
	}
	reply.Respond(w, http.StatusOK, answer)
}

// draft reads the body.
func (t *Tools) draft(w http.ResponseWriter, r *http.Request) (*draft, *reply.Error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, reply.Errorf(reply.UnsupportedEncoding, "the body must not be compressed; its Content-Encoding is %s", reply.Quote(encoding))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, t.MaxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, reply.Errorf(reply.BodyTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, reply.Unread(r, err)
	}
	d := new(draft)
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(d); err != nil || !utf8.Valid(body) {
		return nil, badDraft(err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, badDraft(nil)
	}
	if d.Text == nil {
		return nil, reply.Errorf(reply.MissingKey, "text is missing: the definitions of the file")
	}
	if d.File == nil || *d.File == "" {
		name := defaultFile
		d.File = &name
	}
	if d.Minutes == nil {
		minutes := defaultMinutes
		d.Minutes = &minutes
	}
	if *d.Minutes < 1 || *d.Minutes > maxMinutes {
		return nil, outOfRange("minutes", *d.Minutes, maxMinutes)
	}
	return d, nil
}

// badDraft describes what is wrong with a body that is not a draft; the error is nil if that is its encoding or what
// follows it.
func badDraft(err error) *reply.Error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return reply.Errorf(reply.WrongType, "the body must be an object, not %s", article(wrong.Value))
		}
		e := reply.Errorf(reply.WrongType, "%s must be %s, not %s", wrong.Field,
			map[bool]string{true: "a whole number", false: "a string"}[wrong.Field == "minutes"], article(wrong.Value))
		e.Key = wrong.Field
		return e
	}
	if err != nil {
		if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
			name = strings.Trim(name, `"`)
			e := reply.Errorf(reply.UnknownKey, "the body has no key %s; its keys are file, text and minutes", reply.Quote(name))
			e.Key, e.Nearest = name, reply.Nearest(name, []string{"file", "text", "minutes"})
			return e
		}
	}
	return reply.Errorf(reply.MalformedJSON, "the body is not one JSON object in UTF-8")
}

// article names a JSON type with its article, or a number such as 1.5 itself.
func article(kind string) string {
	if _, number, ok := strings.Cut(kind, " "); ok {
		short, dots := reply.Shorten(number)
		return short + dots
	}
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

func outOfRange(key string, given, most int) *reply.Error {
	e := reply.Errorf(reply.OutOfRange, "%s must be from 1 to %d, not %d", key, most, given)
	e.Key = key
	return e
}

// preview checks a draft and asks its features.
func (t *Tools) preview(ctx context.Context, d *draft) Preview {
	p := Preview{Findings: []definition.Finding{}, Features: definition.NamesIn(*d.File, []byte(*d.Text))}
	registry, err := definition.LoadFiles(with(t.Registry().Files, features.File{Path: *d.File, Text: *d.Text}))
	if err != nil {
		findings, _ := errors.AsType[definition.Findings](err)
		p.Findings = append(p.Findings, findings...)
		return p
	}
	var list []*features.Feature
	for _, name := range p.Features {
		f, _ := registry.Feature(name)
		list = append(list, f)
	}
	p.Preview, p.NoPreview = t.ask(ctx, registry, list, time.Duration(*d.Minutes)*time.Minute)
	return p
}

// with returns files with one added, or one replaced if it has the same name.
func with(files features.Files, file features.File) features.Files {
	files.Definitions = slices.Clone(files.Definitions)
	if i := slices.IndexFunc(files.Definitions, func(f features.File) bool { return f.Path == file.Path }); i >= 0 {
		files.Definitions[i] = file
	} else {
		files.Definitions = append(files.Definitions, file)
	}
	return files
}

// ask asks features on the records of a last stretch of time, or says why not.
func (t *Tools) ask(ctx context.Context, r *features.Registry, list []*features.Feature, last time.Duration) (*preview.Report, string) {
	switch {
	case len(list) == 0:
		return nil, "the file defines no feature"
	case t.Preview == nil:
		return nil, elsewhere
	}
	bounded, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	report, err := t.Preview(bounded, r, list, t.Now().Add(-last))
	switch {
	case err == nil && report.Records == 0 && !report.Cut:
		return nil, fmt.Sprintf("the topics have no record of the last %d minutes", int(last.Minutes()))
	case err == nil:
		return report, ""
	case bounded.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Sprintf("it took more than %v: preview fewer minutes, or use weir preview", Limit)
	default:
		return nil, err.Error()
	}
}
