package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

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
	schema     *avroSchema // of the file; nil for none
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
func parseAvro(text []byte, references ...Reference) (*avroSchema, error) {
	p := avroParser{known: map[string]*avroSchema{}}
	for _, r := range references {
		if _, err := p.parse([]byte(r.Text)); err != nil {
			return nil, fmt.Errorf("the schema cannot be read: %w", err)
		}
	}
	schema, err := p.parse(text)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	if schema.kind != "record" {
		return nil, fmt.Errorf("the schema is of type %s; records are read from one of type record", schema.kind)
	}
	return schema, nil
}

func (f *avroFormat) String() string { return f.name }

func (f *avroFormat) NewScanner(tree *Node) Scanner {
	s := &avroScanner{}
	if f.registered == nil {
		s.program = compileAvro(f.schema, nil, tree)
		return s
	}
	compile := func(schema any) *avroType { return compileAvro(schema.(*avroSchema), f.schema, tree) }
	return &framedScanner[*avroType]{newPrograms(f.registered, compile), s.scan}
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
	return &avroFormat{name: f.name, schema: schema.(*avroSchema), registered: f.registered}, nil
}

// checkAvro says why no value of a type can be at a path below a schema.
func checkAvro(s *avroSchema, path []string, t value.Type) error {
	switch {
	case s.kind == "union":
		var first error
		for _, branch := range s.parts {
			if branch.kind == "null" {
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
	case s.kind == "record" && len(path) > 0:
		if field := s.field(path[0]); field != nil {
			return checkAvro(field.schema, path[1:], t)
		}
		var known []string
		for _, field := range s.fields {
			known = append(known, field.name)
		}
		short := s.name[strings.LastIndexByte(s.name, '.')+1:]
		return errors.New(spelling.UnknownIn(" in record "+short, "field", path[0], known))
	case s.kind == "map" && len(path) > 0:
		return checkAvro(s.parts[0], path[1:], t)
	case len(path) > 0:
		return fmt.Errorf("%s is inside %s, which has no fields", path[0], describeAvro(s))
	case !avroHolds(s, t):
		return fmt.Errorf("%s cannot be read from %s", expectedType(t), describeAvro(s))
	}
	return nil
}

// describeAvro names the type of a schema.
func describeAvro(s *avroSchema) string {
	if s.logical != "" {
		return fmt.Sprintf("Avro's %s (%s)", s.kind, s.logical)
	}
	return "Avro's " + s.kind
}

// avroHolds reports whether a schema may hold values of a field's type.
func avroHolds(s *avroSchema, t value.Type) bool {
	var h holds
	switch s.kind {
	case "string", "enum":
		h.text = true
	case "bytes", "fixed":
		h.number = s.logical == "decimal"
		h.text = !h.number
	case "int", "long", "float", "double":
		h.number = true
	case "boolean":
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

// avroEncodings are those of the primitive types.
var avroEncodings = map[string]avroEncoding{
	"null": avroNull, "boolean": avroBool, "int": avroInt, "long": avroLong, "float": avroFloat,
	"double": avroDouble, "bytes": avroBytes, "string": avroBytes,
}

var avroUnits = map[string]TimeUnit{
	"date": Days, "timestamp-millis": Milliseconds, "timestamp-micros": Microseconds, "timestamp-nanos": Nanoseconds,
	"local-timestamp-millis": Milliseconds, "local-timestamp-micros": Microseconds, "local-timestamp-nanos": Nanoseconds,
}
