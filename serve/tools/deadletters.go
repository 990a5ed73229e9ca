package tools

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/reply"
)

const (
	defaultLetters = 10
	maxLetters     = 100
	// maxContent is how many bytes of a key or a value are shown.
	maxContent = 4 << 10
)

// DeadLetters is the answer of GET /v1/dead-letters.
type DeadLetters struct {
	DeadLetters []DeadLetter `json:"dead_letters"` // latest first
}

// DeadLetter is a record that was set aside, with the beginning of its content.
type DeadLetter struct {
	At        string `json:"at"`     // in the dead-letter topic: topic/partition/offset
	Source    string `json:"source"` // where the record came from, the same
	SetAside  int64  `json:"set_aside"`
	Timestamp int64  `json:"timestamp"` // of the record; both in ms
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Stream    string `json:"stream,omitempty"`
	Replayed  bool   `json:"replayed"`
	// Sealed means that the process's namespace has written it; others may be forged, and whether they were replayed is
	// unknown.
	Sealed bool     `json:"sealed"`
	Key    *Content `json:"key,omitempty"` // nil for none
	Value  *Content `json:"value,omitempty"`
}

// Content is the beginning of some bytes.
type Content struct {
	Bytes  int     `json:"bytes"`            // of all
	Text   *string `json:"text,omitempty"`   // if it is UTF-8
	Base64 string  `json:"base64,omitempty"` // if it is not
}

// ContentOf returns the beginning of bytes; nil if there are none.
func ContentOf(b []byte) *Content {
	if b == nil {
		return nil
	}
	c := &Content{Bytes: len(b)}
	b = b[:min(len(b), maxContent)]
	if c.Bytes > len(b) { // the cut may be within a character
		for range utf8.UTFMax - 1 {
			if last, size := utf8.DecodeLastRune(b); last != utf8.RuneError || size != 1 {
				break
			}
			b = b[:len(b)-1]
		}
	}
	if utf8.Valid(b) {
		text := string(b)
		c.Text = &text
	} else {
		c.Base64 = base64.StdEncoding.EncodeToString(b)
	}
	return c
}

// AnswerDeadLetters answers GET /v1/dead-letters.
func (t *Tools) AnswerDeadLetters(_ http.ResponseWriter, r *http.Request) ([]byte, *reply.Error) {
	reason, most, refusal := lettersAsked(r.URL.RawQuery)
	switch {
	case refusal != nil:
		return nil, refusal
	case t.DeadLetters == nil:
		return nil, reply.Errorf(reply.NoProcessor, "%s", elsewhere)
	case !t.reading.TryLock():
		return nil, reply.Errorf(reply.Overloaded, "dead letters are being read for another request; ask again in some seconds")
	}
	defer t.reading.Unlock()
	access.LogRead(t.Logger, r, slog.String("reason", reason), slog.Int("limit", most))
	ctx, cancel := context.WithTimeout(r.Context(), Limit)
	defer cancel()
	letters, err := t.DeadLetters(ctx, reason, most)
	if err != nil && r.Context().Err() != nil { // Kafka has not failed
		return nil, reply.HungUp()
	}
	if err != nil {
		t.Logger.Warn("dead letters cannot be read", "error", err)
		message := "the dead letters cannot be read: " + err.Error()
		if ctx.Err() != nil {
			message = "the dead letters could not be read within " + Limit.String()
		}
		return nil, reply.Errorf(reply.KafkaUnavailable, "%s", message)
	}
	return reply.AppendJSON(nil, DeadLetters{append([]DeadLetter{}, letters...)}), nil
}

// lettersAsked reads the parameters.
func lettersAsked(query string) (reason string, most int, refusal *reply.Error) {
	parameters, refusal := parametersOf(query, "reason", "limit")
	if refusal != nil {
		return "", 0, refusal
	}
	if parameters.Has("reason") {
		reason = parameters.Get("reason")
		var known []string
		for _, r := range record.Reasons() {
			known = append(known, string(r))
		}
		if !slices.Contains(known, reason) {
			return "", 0, reply.Unknown(reply.UnknownReason, "reason", reason, known)
		}
	}
	most, refusal = limitOf(parameters, defaultLetters, maxLetters)
	return reason, most, refusal
}
