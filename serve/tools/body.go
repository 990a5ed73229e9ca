package tools

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fastjson"

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
	// encoding/json takes names in any case, and any number of times.
	root, err := fastjson.ParseBytes(text)
	if err != nil || !json.Valid(text) || !utf8.Valid(text) {
		return reply.Errorf(reply.MalformedJSON, "%s is not one JSON object in UTF-8", what)
	}
	object, err := root.Object()
	if err != nil {
		return reply.Errorf(reply.WrongType, "%s must be an object; %s is not", what, reply.Show(root))
	}
	if refusal := reply.Fields(object, what, keys, make([]*fastjson.Value, len(keys))); refusal != nil {
		return refusal
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(text, into)); ok {
		name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // without the embedded struct
		return reply.Errorf(reply.WrongType, "%s must be %s, not %s", name, types[name], article(wrong.Value)).At(name)
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
