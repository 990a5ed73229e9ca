package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/hamba/avro/v2"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// avroSpec is the row of the format whose records are single values of an Avro schema of type
// record. A path names fields of records and keys of maps. Schemas come from a registry, by the ID
// in each record, or from a file.
var avroSpec = FormatSpec{
	Name: "avro", Describes: "one record in Avro's binary encoding", New: newAvro,
	Options: []Option{
		{Name: "framing", Describes: "confluent: the record follows the ID of its schema in the registry; none: there is no ID; by default none if a schema is given"},
		{Name: "schema", Describes: "the .avsc file of the schema that records are written with; with framing confluent the reader's schema, whose defaults fill in the fields that a record's schema lacks", File: ".avsc"},
	},
}

type avroFormat struct {
	name       string
	schema     avro.Schema // of the file; nil for none
	registered *registered // nil without framing
}

func newAvro(options Options) (Format, error) {
	framed, err := options.framing()
	if err != nil {
		return nil, err
	}
	f := &avroFormat{name: "avro"}
	if framed {
		f.name, f.registered = "avro of a registry", newRegistered(registeredAvro)
	}
	if options.one("schema") == "" {
		return f, nil
	}
	text := options.Files[options.one("schema")]
	if f.schema, err = parseAvro(text); err != nil {
		return nil, &OptionError{"schema", err.Error()}
	}
	f.name += fmt.Sprintf(" %x", sha256.Sum256(text))
	return f, nil
}

func registeredAvro(s Registered) (any, error) {
	if s.Type != "AVRO" {
		return nil, fmt.Errorf("it is of type %s, and the stream's format is avro", s.Type)
	}
	return parseAvro([]byte(s.Text), s.References...)
}

// parseAvro reads a schema, which must be of type record.
func parseAvro(text []byte, references ...Reference) (avro.Schema, error) {
	cache := &avro.SchemaCache{}
	for _, r := range references {
		if _, err := avro.ParseWithCache(r.Text, "", cache); err != nil {
			return nil, fmt.Errorf("the schema cannot be read: %s", avroReason(err))
		}
	}
	schema, err := avro.ParseBytesWithCache(text, "", cache)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %s", avroReason(err))
	}
	schema = plainAvro(schema)
	if schema.Type() != avro.Record {
		return nil, fmt.Errorf("the schema is of type %s; records are read from one of type record", schema.Type())
	}
	return schema, nil
}

func avroReason(err error) string { return strings.TrimPrefix(err.Error(), "avro: ") }

// plainAvro returns the schema that a name refers to.
func plainAvro(s avro.Schema) avro.Schema {
	if ref, ok := s.(*avro.RefSchema); ok {
		return ref.Schema()
	}
	return s
}

func (f *avroFormat) String() string { return f.name }

func (f *avroFormat) NewScanner(tree *Node) Scanner {
	s := &avroScanner{}
	if f.registered == nil {
		s.program = compileAvro(f.schema, nil, tree)
		return s
	}
	return &framedAvroScanner{s, newPrograms(f.registered, func(schema any) *avroType {
		return compileAvro(schema.(avro.Schema), f.schema, tree)
	})}
}

func (f *avroFormat) Check(path []string, t value.Type) error {
	if f.schema == nil {
		return nil
	}
	return checkAvro(f.schema, path, t)
}

func (f *avroFormat) Registered() bool { return f.registered != nil }

// SchemaOf makes a format that knows the registry's schema of its records.
func (f *avroFormat) SchemaOf(s Registered) (Format, error) {
	schema, err := registeredAvro(s)
	if err != nil {
		return nil, err
	}
	if f.schema != nil { // its defaults replace what the other lacks
		return f, nil
	}
	return &avroFormat{name: f.name, schema: schema.(avro.Schema), registered: f.registered}, nil
}

// framedAvroScanner reads records that name their schemas.
type framedAvroScanner struct {
	*avroScanner
	programs programs[*avroType]
}

// Scan finds the values of the tree in a record.
func (s *framedAvroScanner) Scan(rec *Record, values []Datum) error {
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

// checkAvro says why no value of a type can be at a path below a schema.
func checkAvro(s avro.Schema, path []string, t value.Type) error {
	s = plainAvro(s)
	switch s := s.(type) {
	case *avro.UnionSchema:
		var first error
		for _, branch := range s.Types() {
			if branch.Type() == avro.Null {
				continue
			}
			err := checkAvro(branch, path, t)
			if err == nil {
				return nil
			}
			if first == nil {
				first = err
			}
		}
		return first
	case *avro.RecordSchema:
		if len(path) == 0 {
			break
		}
		var known []string
		for _, field := range s.Fields() {
			if field.Name() == path[0] {
				return checkAvro(field.Type(), path[1:], t)
			}
			known = append(known, field.Name())
		}
		return errors.New(spelling.UnknownIn(" in record "+s.Name(), "field", path[0], known))
	case *avro.MapSchema:
		if len(path) > 0 {
			return checkAvro(s.Values(), path[1:], t)
		}
	}
	if len(path) > 0 {
		return fmt.Errorf("%s is inside %s, which has no fields", path[0], describeAvro(s))
	}
	if !avroHolds(s, t) {
		return fmt.Errorf("%s cannot be read from %s", expectedType(t), describeAvro(s))
	}
	return nil
}

// describeAvro names the type of a schema.
func describeAvro(s avro.Schema) string {
	if name := avroLogical(s); name != "" {
		return fmt.Sprintf("Avro's %s (%s)", s.Type(), name)
	}
	return fmt.Sprintf("Avro's %s", s.Type())
}

// avroLogical returns the name of a schema's logical type if it is known.
func avroLogical(s avro.Schema) string {
	if l, ok := s.(avro.LogicalTypeSchema); ok && l.Logical() != nil {
		return string(l.Logical().Type())
	}
	if p, ok := s.(avro.PropertySchema); ok {
		if name, ok := p.Prop("logicalType").(string); ok && (name == "uuid" || strings.HasSuffix(name, "timestamp-nanos")) {
			return name
		}
	}
	return ""
}

// avroHolds reports whether a schema may hold values of a field's type.
func avroHolds(s avro.Schema, t value.Type) bool {
	var h holds
	switch s.Type() {
	case avro.String, avro.Enum:
		h.text = true
	case avro.Bytes, avro.Fixed:
		h.number = avroLogical(s) == string(avro.Decimal)
		h.text = !h.number
	case avro.Int, avro.Long, avro.Float, avro.Double:
		h.number = true
	case avro.Boolean:
		h.truth = true
	}
	return h.values(t)
}

// avroType reads or skips the values of a schema at one place of the tree.
type avroType struct {
	encoding avroEncoding
	node     *Node // nil if the value is not used
	empty    bool  // its values take no bytes
	unit     TimeUnit
	size     int // of a fixed
	scale    int // of a decimal
	uuid     bool
	symbols  [][]byte
	parts    []*avroType // fields, branches, values of keys by the node's children, the item last
	lacking  []avroDefault
}

// avroEncoding is how values of a type are encoded.
type avroEncoding uint8

const (
	avroNull avroEncoding = iota
	avroBool
	avroInt
	avroLong
	avroFloat
	avroDouble
	avroBytes // and strings
	avroDecimal
	avroFixed
	avroFixedDecimal
	avroEnum
	avroUnion
	avroRecord
	avroArray
	avroMap
)

// avroEncodings are those of the types that need nothing else compiled.
var avroEncodings = map[avro.Type]avroEncoding{
	avro.Null: avroNull, avro.Boolean: avroBool, avro.Int: avroInt, avro.Long: avroLong, avro.Float: avroFloat,
	avro.Double: avroDouble, avro.Bytes: avroBytes, avro.String: avroBytes,
}

var avroUnits = map[string]TimeUnit{
	string(avro.Date): Days, string(avro.TimestampMillis): Milliseconds, string(avro.TimestampMicros): Microseconds,
	string(avro.LocalTimestampMillis): Milliseconds, string(avro.LocalTimestampMicros): Microseconds,
	"timestamp-nanos": Nanoseconds, "local-timestamp-nanos": Nanoseconds,
}
