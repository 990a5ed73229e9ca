package record

import (
	"fmt"
	"runtime"
	"strings"
)

// Reason is why a record cannot be used, in one word.
type Reason string

// The reasons.
const (
	Malformed        Reason = "malformed" // it is not in its stream's format
	WrongType        Reason = "wrong_type"
	MissingField     Reason = "missing_field"
	InvalidUTF8      Reason = "invalid_utf8"
	MissingTimestamp Reason = "missing_timestamp"
	BadTimestamp     Reason = "bad_timestamp"
	FutureTimestamp  Reason = "future_timestamp"
	BadExpression    Reason = "expression" // an expression fails for the event
	Oversized        Reason = "oversized"
	// UnusableSchema means that a record's schema is not in the registry, or not one of its
	// stream's format.
	UnusableSchema Reason = "unusable_schema"
	// BrokenBatch means a whole record batch that cannot be decoded.
	BrokenBatch Reason = "broken_batch"
	// Defect means that Weir itself fails to read a record.
	Defect Reason = "defect"
	// Late is not poison: it marks dead letters of streams with LateToDeadLetter.
	Late Reason = "late"
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{
		Malformed, WrongType, MissingField, InvalidUTF8, MissingTimestamp,
		BadTimestamp, FutureTimestamp, BadExpression, Oversized, UnusableSchema, BrokenBatch, Defect, Late,
	}
}

// Poison is a record that cannot be used, however often it is tried.
type Poison struct {
	Reason  Reason
	Stream  string // empty if no stream was found for it
	Path    string // in the record, with dots; empty for the whole record
	Message string
}

// Error returns the message, prefixed with what it is about.
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

// Recover makes a panic in the function that defers it the poison of a record: those who write events must not be able to
// end a process, which would end again at the same record. What it interrupts must begin anew with the next record.
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = &Poison{Reason: Defect, Message: fmt.Sprintf("this version of Weir has a defect, because of which it cannot read the record: %v, at %s", p, panicked())}
	}
}

// panicked returns where the function that is being recovered from panicked.
func panicked() string {
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])]) // below Recover
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
