package client

import "fmt"

// Error is why the server did not answer.
type Error struct {
	Status  int  `json:"-"` // of HTTP
	Code    Code // empty if something other than Weir answered
	Message string

	Feature string // the feature concerned
	Key     string // of the question or of an entity
	Entity  *int   // index in the question's Entities
	Event   *int   // index in the question's Pending
	Reason  string // why a pending event would be set aside
	Path    string // in the event, with dots
	Nearest string // the name that was perhaps meant
}

// Error returns the message, with the code.
func (e *Error) Error() string {
	if e.Code == "" {
		return "weir: " + e.Message
	}
	return fmt.Sprintf("weir: %s (%s)", e.Message, e.Code)
}

// Code identifies an error. A server may have codes that a client does not know.
type Code string

// The codes.
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
	NoTimeline          Code = "no_timeline"
	Internal            Code = "internal"
)
