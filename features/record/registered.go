package record

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/weir-stream/weir/value"
)

// Registered is a schema in a registry.
type Registered struct {
	Type string // AVRO, PROTOBUF or JSON
	Text string
	// References are all schemas that it refers to, directly or indirectly. Each comes after those that it refers to.
	References []Reference
}

// Reference is a schema with the name by which others refer to it.
type Reference struct{ Name, Text string }

// MissingSchema is the error of a Scanner for a record that names a schema which its Format has not been given yet.
// Nothing of the record has been used: the caller fetches the schema, calls Give, and maps the record again.
type MissingSchema struct {
	ID int32
	of *registered
}

func (e *MissingSchema) Error() string {
	return fmt.Sprintf("schema %d has not been fetched yet", e.ID)
}

// Give gives the schema to the format. A schema never changes under its ID.
func (e *MissingSchema) Give(s Registered) {
	parsed, err := e.of.parse(s)
	if err != nil {
		e.of.set(e.ID, nil, fmt.Sprintf("schema %d cannot be used: %v", e.ID, err))
		return
	}
	e.of.set(e.ID, parsed, "")
}

// Refuse makes records with the schema poison, with the reason why, until Forget.
func (e *MissingSchema) Refuse(why string) { e.of.set(e.ID, nil, why) }

// Forget undoes Refuse.
func (e *MissingSchema) Forget() {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	delete(e.of.known, e.ID)
}

// registered holds the schemas that a format has been given. It is safe for concurrent use.
type registered struct {
	parse func(Registered) (any, error)
	mu    sync.RWMutex
	known map[int32]knownSchema
}

type knownSchema struct {
	parsed  any    // nil if the schema cannot be used
	problem string // why it cannot be used
}

func newRegistered(parse func(Registered) (any, error)) *registered {
	return &registered{parse: parse, known: map[int32]knownSchema{}}
}

func (r *registered) set(id int32, parsed any, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[id] = knownSchema{parsed, problem}
}

// find returns the schema with an ID. The error is a *Poison or a *MissingSchema.
func (r *registered) find(id int32) (any, error) {
	r.mu.RLock()
	s, ok := r.known[id]
	r.mu.RUnlock()
	switch {
	case !ok:
		return nil, &MissingSchema{id, r}
	case s.parsed == nil:
		return nil, &Poison{Reason: UnusableSchema, Message: s.problem}
	}
	return s.parsed, nil
}

// framed splits a record in Confluent's wire format: a zero byte, the ID of a schema in four bytes,
// and the encoded value.
func framed(data []byte) (id int32, body []byte, err error) {
	const header = 5
	if len(data) > 0 && data[0] != 0 {
		return 0, nil, &Poison{Reason: Malformed, Message: fmt.Sprintf("expected a zero byte and the ID of a schema, found byte 0x%02x", data[0])}
	}
	if len(data) < header {
		return 0, nil, &Poison{Reason: Malformed, Message: fmt.Sprintf("expected a zero byte and the ID of a schema, found %d bytes", len(data))}
	}
	return int32(binary.BigEndian.Uint32(data[1:])), data[header:], nil
}

// programs are the schemas that a scanner has compiled, by ID.
type programs[P any] struct {
	of      *registered
	compile func(schema any) P
	byID    map[int32]P
}

func newPrograms[P any](of *registered, compile func(schema any) P) programs[P] {
	return programs[P]{of, compile, map[int32]P{}}
}

// find returns the program of the schema with an ID; its error is that of registered.find.
func (p *programs[P]) find(id int32) (P, error) {
	program, ok := p.byID[id]
	if ok {
		return program, nil
	}
	schema, err := p.of.find(id)
	if err != nil {
		return program, err
	}
	program = p.compile(schema)
	p.byID[id] = program
	return program, nil
}

// framedScanner reads records that name their schemas.
type framedScanner[P any] struct {
	programs programs[P]
	scan     func(program P, body []byte, values []Datum) error
}

// Scan finds the values of the tree in a record.
func (s *framedScanner[P]) Scan(rec *Record, values []Datum) error {
	id, body, err := framed(rec.Value)
	if err != nil {
		return err
	}
	program, err := s.programs.find(id)
	if err != nil {
		return err
	}
	return s.scan(program, body, values)
}

// holds says what a schema may hold at a path.
type holds struct{ text, number, truth bool }

// values reports whether that can be a value of a field's type. Texts may be decimals and timestamps, too. A location
// is checked as its two numbers.
func (h holds) values(t value.Type) bool {
	switch t {
	case value.String:
		return h.text
	case value.Int, value.Float:
		return h.number
	case value.Decimal, value.Timestamp:
		return h.number || h.text
	case value.Bool:
		return h.truth
	}
	return true
}

// expectedType names a field's type in a message.
func expectedType(t value.Type) string { return fmt.Sprintf("a field of type %s", t) }
