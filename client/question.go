package client

import (
	"encoding/json"
	"errors"
	"time"
)

// Entity is whom is asked about: the values of the keys that the features need,
// and of others. Values are what encoding/json takes; decimals keep their digits
// as a json.Number.
type Entity map[string]any

// Question asks for features of entities at a moment.
type Question struct {
	Features []string // names
	Service  string   // a name, which stands for the service's features
	Entities []Entity // at least one; each is answered by itself, in their order
	// At is the moment, cut to milliseconds; if zero the present one, or that of
	// the latest pending event.
	At time.Time

	// Members are values of which all features asked for shall say whether the
	// entities have met them.
	Members []any
	// MembersOf are such values of single features, by their names. There is
	// either of both.
	MembersOf map[string][]any
	// Pending are events that are not on the bus yet and shall count as if they
	// were.
	Pending []Event
	// WaitFor is a record that was written and shall count: the answer waits until
	// it does, and says in Applied if it could not.
	WaitFor *Record
}

// Record is where a producer has written an event.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	// Timeout is how long the answer waits, cut to milliseconds; 100 ms if zero.
	// The server waits for no longer than half of its time for a question.
	Timeout time.Duration
}

// MarshalJSON writes a record as the server takes it.
func (r *Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Offset    int64  `json:"offset"`
		Timeout   int64  `json:"timeout_ms,omitempty"`
	}{r.Topic, r.Partition, r.Offset, r.Timeout.Milliseconds()})
}

// Event is an event as its record will stand on the topic of a stream.
type Event struct {
	Stream string `json:"stream"` // its name
	Event  any    `json:"event"`  // what encoding/json makes the record of; a json.RawMessage stands as it is
}

// encode writes the question as the server takes it.
func (q *Question) encode() ([]byte, error) {
	wire := struct {
		Features []string `json:"features,omitempty"`
		Service  string   `json:"service,omitempty"`
		Entities []Entity `json:"entities"`
		At       *int64   `json:"at,omitempty"`
		Members  any      `json:"members,omitempty"`
		Pending  []Event  `json:"pending,omitempty"`
		WaitFor  *Record  `json:"wait_for,omitempty"`
	}{Features: q.Features, Service: q.Service, Entities: q.Entities, Pending: q.Pending, WaitFor: q.WaitFor}
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
