package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/diff"
	"github.com/weir-stream/weir/operate/preview"
	"github.com/weir-stream/weir/serve/access"
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
	Features []string `json:"features"`
	// Effects say which features answer differently for a time once the file replaces the definitions in use.
	Effects []diff.Effect   `json:"effects,omitempty"`
	Preview *preview.Report `json:"preview,omitempty"`
	// NoPreview says why there is none although the definitions are right.
	NoPreview string `json:"no_preview,omitempty"`
}

// AnswerPreview answers POST /v1/preview: it checks a file together with the definitions in use, in place
// of the file of the same name if there is one, and asks its features on the last minutes of their
// topics.
func (t *Tools) AnswerPreview(w http.ResponseWriter, r *http.Request) ([]byte, *reply.Error) {
	d, refusal := t.draft(w, r)
	if refusal != nil {
		return nil, refusal
	}
	if !t.previewing.TryLock() {
		return nil, reply.Errorf(reply.Overloaded, "another preview is under way; ask again in some seconds")
	}
	defer t.previewing.Unlock()
	p := Preview{Findings: []definition.Finding{}, Features: definition.NamesIn(*d.File, []byte(*d.Text))}
	access.LogRead(t.Logger, r, slog.String("file", *d.File), slog.Int("minutes", *d.Minutes), slog.Any("features", p.Features))
	refusal = t.preview(r.Context(), d, &p)
	if r.Context().Err() != nil { // the preview may have ended early
		refusal = reply.HungUp()
	}
	if refusal != nil {
		return nil, refusal
	}
	answer := reply.AppendJSON(nil, p)
	if len(answer) > maxPreview {
		return nil, reply.Errorf(reply.AnswerTooLarge, "the preview has more than %d bytes; preview fewer features at a time", maxPreview)
	}
	return answer, nil
}

// draft reads the body.
func (t *Tools) draft(w http.ResponseWriter, r *http.Request) (*draft, *reply.Error) {
	body, refusal := t.body(w, r)
	if refusal != nil {
		return nil, refusal
	}
	d := new(draft)
	if refusal := decode(body, d, "the body", map[string]string{"file": "a string", "text": "a string", "minutes": "a whole number"}, "file", "text", "minutes"); refusal != nil {
		return nil, refusal
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

func outOfRange(key string, given, most int) *reply.Error {
	return reply.Errorf(reply.OutOfRange, "%s must be from 1 to %d, not %d", key, most, given).At(key)
}

// checkLimit is how long a draft is checked.
const checkLimit = 5 * time.Second

// preview checks a draft and asks its features.
func (t *Tools) preview(ctx context.Context, d *draft, p *Preview) *reply.Error {
	served := t.Registry()
	bounded, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	registry, err := definition.LoadFilesWithin(bounded, with(served.Files, features.File{Path: *d.File, Text: *d.Text}))
	if findings, wrong := errors.AsType[definition.Findings](err); wrong {
		p.Findings = append(p.Findings, findings...)
		return nil
	}
	if err != nil {
		return reply.Errorf(reply.BodyTooLarge, "the definitions take more than %v to check; check them with weir validate", checkLimit)
	}
	p.Effects = diff.Of(served, registry).Effects()
	var list []*features.Feature
	for _, name := range p.Features {
		f, _ := registry.Feature(name)
		list = append(list, f)
	}
	if topic := foreignTopic(served, registry, list); topic != "" {
		p.NoPreview = "no definition in use reads the topic " + topic + "; weir preview reads it with your own access to Kafka"
		return nil
	}
	p.Preview, p.NoPreview = t.ask(ctx, registry, list, time.Duration(*d.Minutes)*time.Minute)
	return nil
}

// foreignTopic returns a topic that a preview of features reads and the definitions in use do not read; empty if there is none. The
// process may have access to more topics than the author, such as those of others.
func foreignTopic(served, r *features.Registry, list []*features.Feature) string {
	for _, topic := range preview.Topics(r, list) {
		if !slices.Contains(served.Topics(), topic) {
			return topic
		}
	}
	return ""
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
