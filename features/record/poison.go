package record

import "strings"

// Reason says in one word why a record cannot be used.
type Reason string

// The reasons.
const (
	Malformed        Reason = "malformed" // it is not of its stream's format
	WrongType        Reason = "wrong_type"
	MissingField     Reason = "missing_field"
	InvalidUTF8      Reason = "invalid_utf8"
	MissingTimestamp Reason = "missing_timestamp"
	BadTimestamp     Reason = "bad_timestamp"
	FutureTimestamp  Reason = "future_timestamp"
	BadExpression    Reason = "expression" // one cannot be computed for the event
	Oversized        Reason = "oversized"
	// UnusableSchema is of a record whose schema is not in the registry, or is none
	// of its stream's format.
	UnusableSchema Reason = "unusable_schema"
	// BrokenBatch is of a whole batch of the log that cannot be decoded.
	BrokenBatch Reason = "broken_batch"
	// Late is no poison: it marks dead letters of streams with LateToDeadLetter.
	Late Reason = "late"
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{
		Malformed, WrongType, MissingField, InvalidUTF8, MissingTimestamp,
		BadTimestamp, FutureTimestamp, BadExpression, Oversized, UnusableSchema, BrokenBatch, Late,
	}
}

// Poison is a record that cannot be used, whenever it is tried again.
type Poison struct {
	Reason  Reason
	Stream  string // empty where no stream was found for it
	Path    string // in the record, with dots; empty for the whole record
	Message string
}

// Error is the message with what it is about before it.
func (p *Poison) Error() string {
	var b strings.Builder
	if p.Stream != "" {
		b.WriteString("stream " + p.Stream + ": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}
