package client

import (
	"encoding/json"
	"errors"
	"time"
)

// Entity is an entity to ask about: the values of the keys that the features need; it may have
// others. Values are encoded by encoding/json; a json.Number keeps the digits of decimals.
type Entity map[string]any

// Question asks for features of entities at a moment.
type Question struct {
	Features []string // names
	Service  string   // asks for the service's features
	Entities []Entity // at least one; each has a result, in order
	// At is the moment of the question, truncated to milliseconds; if zero, the present, or the
	// time of the latest event, pending or in hand.
	At time.Time

	// Members are values; the answer of each feature says which of them its window holds.
	Members []any
	// MembersOf are such values for single features, by name. A question may have Members or
	// MembersOf, not both.
	MembersOf map[string][]any
	// Pending are events that are not on the bus yet and count as if they were.
	Pending []Event
	// Event is the event in hand, for features that read its fields: it is only looked at, and does not count. Without it
	// the latest of Pending is in hand.
	Event *Event
	// WaitFor is a record that was written and must count: the answer waits for it, and Answer.Applied reports whether it
	// was applied in time.
	WaitFor *Record
}

// Record is the location at which a producer has written an event.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	// Timeout is how long the answer waits, truncated to milliseconds; 100 ms if zero. The server
	// waits for at most half of its time for a question.
	Timeout time.Duration
}

// MarshalJSON encodes a record for the server.
func (r *Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Offset    int64  `json:"offset"`
		Timeout   int64  `json:"timeout_ms,omitempty"`
	}{r.Topic, r.Partition, r.Offset, r.Timeout.Milliseconds()})
}

// Event is an event in the form of its future record on the topic of a stream.
type Event struct {
	Stream string `json:"stream"` // its name
	Event  any    `json:"event"`  // encoded by encoding/json; a json.RawMessage is sent unchanged
}

// encode encodes the question for the server.
func (q *Question) encode() ([]byte, error) {
	wire := struct {
		Features []string `json:"features,omitempty"`
		Service  string   `json:"service,omitempty"`
		Entities []Entity `json:"entities"`
		At       *int64   `json:"at,omitempty"`
		Members  any      `json:"members,omitempty"`
		Pending  []Event  `json:"pending,omitempty"`
		Event    *Event   `json:"event,omitempty"`
		WaitFor  *Record  `json:"wait_for,omitempty"`
	}{Features: q.Features, Service: q.Service, Entities: q.Entities, Pending: q.Pending, Event: q.Event, WaitFor: q.WaitFor}
	if wire.Entities == nil {
		wire.Entities = []Entity{} // the server says what is wrong with it
	}
	if !q.At.IsZero() {
		at := q.At.UnixMilli()
		wire.At = &at
	}
	switch {
	case q.Members != nil && q.MembersOf != nil:
		return nil, errors.New("weir: a question has either Members or MembersOf, not both")
	case q.Members != nil:
		wire.Members = q.Members
	case q.MembersOf != nil:
		wire.Members = q.MembersOf
	}
	return json.Marshal(wire)
}
