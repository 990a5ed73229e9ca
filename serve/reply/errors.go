// Package reply writes responses: whole, as JSON, and as an Error where there is no answer.
package reply

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/weir-stream/weir/internal/spelling"
)

// Error is why a question has no answer. Its JSON is under "error" in the body of every response
// that is not a 200.
type Error struct {
	Status  int    `json:"-"` // of HTTP
	Code    Code   `json:"code"`
	Message string `json:"message"`

	Feature string `json:"feature,omitempty"`
	Key     string `json:"key,omitempty"`     // of the question or of an entity
	Entity  *int   `json:"entity,omitempty"`  // index in the question's entities
	Event   *int   `json:"event,omitempty"`   // index in the question's pending events
	Reason  string `json:"reason,omitempty"`  // why an event is poison; see record.Poison
	Path    string `json:"path,omitempty"`    // in the event, with dots
	Nearest string `json:"nearest,omitempty"` // the name that was perhaps meant
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Code identifies an error for clients.
type Code string

// The codes of errors.
const (
	MalformedJSON       Code = "malformed_json"
	MalformedQuery      Code = "malformed_query"
	UnreadableBody      Code = "unreadable_body"
	UnknownKey          Code = "unknown_key"
	DuplicateKey        Code = "duplicate_key"
	WrongType           Code = "wrong_type"
	MissingFeatures     Code = "missing_features"
	MissingEntities     Code = "missing_entities"
	MissingKey          Code = "missing_key"
	MissingMembers      Code = "missing_members"
	NoMembers           Code = "no_members"
	NoTimeline          Code = "no_timeline"
	BadMoment           Code = "bad_at"
	MomentTooFar        Code = "at_too_far"
	UnknownFeature      Code = "unknown_feature"
	UnknownService      Code = "unknown_service"
	UnknownStream       Code = "unknown_stream"
	UnknownTopic        Code = "unknown_topic"
	UnknownReason       Code = "unknown_reason"
	UnknownList         Code = "unknown_list"
	BadEntry            Code = "bad_entry"
	OutOfRange          Code = "out_of_range"
	BadEvent            Code = "bad_event"
	UnknownPath         Code = "unknown_path"
	MethodNotAllowed    Code = "method_not_allowed"
	BodyTooLarge        Code = "body_too_large"
	TooManyValues       Code = "too_many_values"
	AnswerTooLarge      Code = "answer_too_large"
	UnsupportedEncoding Code = "unsupported_encoding"
	StoreUnavailable    Code = "store_unavailable"
	KafkaUnavailable    Code = "kafka_unavailable"
	NoProcessor         Code = "no_processor"
	Overloaded          Code = "overloaded"
	MissingToken        Code = "missing_token"
	InvalidToken        Code = "invalid_token"
	Forbidden           Code = "forbidden"
	IssuerUnavailable   Code = "issuer_unavailable"
	MissingCertificate  Code = "missing_certificate"
	UnknownHost         Code = "unknown_host"
	Abandoned           Code = "abandoned"
	Internal            Code = "internal"
)

// statuses has the codes whose status is not 400.
var statuses = map[Code]int{
	UnknownFeature:      http.StatusNotFound,
	UnknownService:      http.StatusNotFound,
	UnknownStream:       http.StatusNotFound,
	UnknownTopic:        http.StatusNotFound,
	UnknownReason:       http.StatusNotFound,
	UnknownList:         http.StatusNotFound,
	NoProcessor:         http.StatusMisdirectedRequest,
	UnknownPath:         http.StatusNotFound,
	MethodNotAllowed:    http.StatusMethodNotAllowed,
	BodyTooLarge:        http.StatusRequestEntityTooLarge,
	TooManyValues:       http.StatusRequestEntityTooLarge,
	AnswerTooLarge:      http.StatusRequestEntityTooLarge,
	UnsupportedEncoding: http.StatusUnsupportedMediaType,
	StoreUnavailable:    http.StatusServiceUnavailable,
	KafkaUnavailable:    http.StatusServiceUnavailable,
	Overloaded:          http.StatusServiceUnavailable,
	MissingToken:        http.StatusUnauthorized,
	InvalidToken:        http.StatusUnauthorized,
	Forbidden:           http.StatusForbidden,
	IssuerUnavailable:   http.StatusServiceUnavailable,
	MissingCertificate:  http.StatusForbidden,
	UnknownHost:         http.StatusMisdirectedRequest,
	Abandoned:           499, // nginx's, for the log of a proxy
	Internal:            http.StatusInternalServerError,
}

// Errorf makes an error of a code, with its status.
func Errorf(code Code, format string, args ...any) *Error {
	status, ok := statuses[code]
	if !ok {
		status = http.StatusBadRequest
	}
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Defect returns the error for a defect.
func Defect() *Error {
	return Errorf(Internal, "the question could not be answered because of a defect; the server's log has the details")
}

// HungUp returns the error for a client that closed its side of the connection before it was answered: it may have closed
// only that, and still read.
func HungUp() *Error {
	return Errorf(Abandoned, "the connection was closed on the client's side before the answer; keep it open until then")
}

// Compressed returns the error for a body that is compressed; nil if it is not.
func Compressed(r *http.Request) *Error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return Errorf(UnsupportedEncoding, "the body must not be compressed; its Content-Encoding is %s", Quote(encoding))
	}
	return nil
}

// Unread returns the error for a body that could not be read to its end, or that is longer than http.MaxBytesReader allows.
func Unread(r *http.Request, err error) *Error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Errorf(BodyTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // net/http has then canceled the request's context, too
		return Errorf(UnreadableBody, "the body did not arrive in time")
	case errors.Is(err, io.ErrUnexpectedEOF), r.Context().Err() != nil:
		return HungUp()
	default:
		return Errorf(UnreadableBody, "the body could not be read: %v", err)
	}
}

// Unknown returns the error for an unknown name. The names are those that the client may know: the error has the nearest
// of them, or else the first ones.
func Unknown(code Code, what, name string, names []string) *Error {
	e := Errorf(code, "there is no %s %s", what, Quote(name))
	if e.Nearest = spelling.Nearest(name, names); e.Nearest != "" {
		e.Message += fmt.Sprintf("; did you mean %q?", e.Nearest)
	} else if len(names) > 0 {
		const most = 10
		first := names[:min(len(names), most)]
		e.Message += "; known are " + strings.Join(first, ", ")
		if more := len(names) - len(first); more > 0 {
			e.Message += fmt.Sprintf(" and %d more", more)
		}
	}
	return e
}

// Quote quotes text that a client sent, shortened if it is long.
func Quote(s string) string {
	short, dots := Shorten(s)
	return fmt.Sprintf("%q%s", short, dots)
}

// Shorten returns the beginning of text that a client sent, and dots if there is more.
func Shorten(s string) (short, dots string) {
	const most = 64
	if len(s) <= most {
		return s, ""
	}
	return strings.ToValidUTF8(s[:most], ""), "…"
}
