package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/weir-stream/weir/serve/reply"
)

// body reads the body of a request, which is JSON.
func (t *Tools) body(w http.ResponseWriter, r *http.Request) ([]byte, *reply.Error) {
	// The page of another site may send other types without asking first.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, reply.Errorf(reply.UnsupportedEncoding, "the body must have the Content-Type application/json, not %s", reply.Quote(r.Header.Get("Content-Type")))
	}
	if e := reply.Compressed(r); e != nil {
		return nil, e
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, t.MaxBody))
	if err != nil {
		return nil, reply.Unread(r, err)
	}
	return body, nil
}

// decode decodes an object with the given keys only. what says what it is, and types those of its members.
func decode(text []byte, into any, what string, types map[string]string, keys ...string) *reply.Error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return reply.Errorf(reply.WrongType, "%s must be an object, not %s", what, article(wrong.Value))
		}
		_, name, found := strings.Cut(wrong.Field, ".") // of an embedded struct
		if !found {
			name = wrong.Field
		}
		return reply.Errorf(reply.WrongType, "%s must be %s, not %s", name, types[name], article(wrong.Value)).At(name)
	}
	if err != nil {
		if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
			return reply.NoKey(what, strings.Trim(name, `"`), keys)
		}
	}
	if _, end := decoder.Token(); err != nil || end != io.EOF || !utf8.Valid(text) {
		return reply.Errorf(reply.MalformedJSON, "%s is not one JSON object in UTF-8", what)
	}
	return nil
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
