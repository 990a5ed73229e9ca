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

// avroSpec is the row of the format of records that are one value of an Avro schema
// each, of a record. A path names fields of records and keys of maps.
var avroSpec = FormatSpec{
	Name: "avro", Describes: "one record in Avro's binary encoding", New: newAvro,
	Options: []Option{
		{Name: "schema", Describes: "the .avsc file of the schema that the records are written with", File: ".avsc", Required: true},
	},
}

type avroFormat struct {
	name   string
	schema avro.Schema
}

func newAvro(options Options) (Format, error) {
	text := options.Files[options.one("schema")]
	schema, err := parseAvro(text)
	if err != nil {
		return nil, &OptionError{"schema", err.Error()}
	}
	return &avroFormat{fmt.Sprintf("avro %x", sha256.Sum256(text)), schema}, nil
}

// parseAvro reads a schema, which must be that of a record.
func parseAvro(text []byte, references ...[]byte) (avro.Schema, error) {
	cache := &avro.SchemaCache{}
	for _, r := range references {
		if _, err := avro.ParseBytesWithCache(r, "", cache); err != nil {
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

// plainAvro is the schema that a name refers to.
func plainAvro(s avro.Schema) avro.Schema {
	if ref, ok := s.(*avro.RefSchema); ok {
		return ref.Schema()
	}
	return s
}

func (f *avroFormat) String() string { return f.name }

func (f *avroFormat) NewScanner(tree *Node) Scanner {
	return &avroScanner{program: compileAvro(f.schema, tree)}
}

func (f *avroFormat) Check(path []string, t value.Type) error { return checkAvro(f.schema, path, t) }

// checkAvro says why no value of a type can stand at a path below a schema.
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
		return fmt.Errorf("%s stands below %s, which has no fields", path[0], describeAvro(s))
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

// avroLogical is the name of a schema's logical type, as far as it is known.
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

// avroHolds says whether a schema may hold values of a field's type; those of
// strings may hold decimals and timestamps, too.
func avroHolds(s avro.Schema, t value.Type) bool {
	text, number := false, false
	switch s.Type() {
	case avro.String, avro.Enum:
		text = true
	case avro.Bytes, avro.Fixed:
		number = avroLogical(s) == string(avro.Decimal)
		text = !number
	case avro.Int, avro.Long, avro.Float, avro.Double:
		number = true
	}
	switch t {
	case value.String:
		return text
	case value.Int, value.Float:
		return number
	case value.Decimal, value.Timestamp:
		return number || text
	case value.Bool:
		return s.Type() == avro.Boolean
	case value.Location:
		return s.Type() == avro.Record || s.Type() == avro.Map
	}
	return true
}

// expectedType is a field's type in a message.
func expectedType(t value.Type) string { return fmt.Sprintf("a field of type %s", t) }

// avroType reads the values of a schema at one place of the tree, or passes over
// them.
type avroType struct {
	kind    avroKind
	node    *Node // nil where nobody looks at the value
	empty   bool  // its values take no bytes
	unit    TimeUnit
	size    int // of a fixed
	scale   int // of a decimal
	uuid    bool
	symbols [][]byte
	parts   []*avroType // fields, branches, values of keys by the node's children, the item last
}

type avroKind uint8

const (
	avroNull avroKind = iota
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

// avroKinds are the kinds of the types that have nothing to compile but that.
var avroKinds = map[avro.Type]avroKind{
	avro.Null: avroNull, avro.Boolean: avroBool, avro.Int: avroInt, avro.Long: avroLong, avro.Float: avroFloat,
	avro.Double: avroDouble, avro.Bytes: avroBytes, avro.String: avroBytes,
}

var avroUnits = map[string]TimeUnit{
	string(avro.Date): Days, string(avro.TimestampMillis): Milliseconds, string(avro.TimestampMicros): Microseconds,
	string(avro.LocalTimestampMillis): Milliseconds, string(avro.LocalTimestampMicros): Microseconds,
	"timestamp-nanos": Nanoseconds, "local-timestamp-nanos": Nanoseconds,
}

// avroCompiler makes the types that a schema's records are read by.
type avroCompiler struct {
	passed map[avro.Schema]*avroType // named types that nobody looks at; they may hold themselves
}

// compileAvro makes the type by which records of a schema are read for a tree.
func compileAvro(s avro.Schema, tree *Node) *avroType {
	c := &avroCompiler{passed: map[avro.Schema]*avroType{}}
	return c.compile(s, tree)
}

func (c *avroCompiler) compile(s avro.Schema, n *Node) *avroType {
	s = plainAvro(s)
	if n == nil {
		if t := c.passed[s]; t != nil {
			return t
		}
	}
	t := &avroType{kind: avroKinds[s.Type()], node: n, unit: avroUnits[avroLogical(s)], empty: s.Type() == avro.Null}
	if _, ok := s.(avro.NamedSchema); ok && n == nil {
		c.passed[s] = t
	}
	logical := avroLogical(s)
	switch s := s.(type) {
	case *avro.PrimitiveSchema:
		if logical == string(avro.Decimal) {
			t.kind, t.scale = avroDecimal, s.Logical().(*avro.DecimalLogicalSchema).Scale()
		}
	case *avro.FixedSchema:
		t.kind, t.size, t.empty = avroFixed, s.Size(), s.Size() == 0
		t.uuid = logical == "uuid" && t.size == uuidBytes
		if logical == string(avro.Decimal) {
			t.kind, t.scale = avroFixedDecimal, s.Logical().(*avro.DecimalLogicalSchema).Scale()
		}
	case *avro.EnumSchema:
		t.kind = avroEnum
		for _, symbol := range s.Symbols() {
			t.symbols = append(t.symbols, []byte(symbol))
		}
	case *avro.UnionSchema:
		t.kind = avroUnion
		for _, branch := range s.Types() {
			t.parts = append(t.parts, c.compile(branch, n))
		}
	case *avro.RecordSchema:
		c.record(t, s)
	case *avro.ArraySchema:
		t.kind, t.parts = avroArray, []*avroType{c.compile(s.Items(), nil)}
	case *avro.MapSchema:
		t.kind = avroMap
		if n != nil {
			for _, child := range n.children {
				t.parts = append(t.parts, c.compile(s.Values(), child))
			}
		}
		t.parts = append(t.parts, c.compile(s.Values(), nil))
	}
	return t
}

func (c *avroCompiler) record(t *avroType, s *avro.RecordSchema) {
	t.kind, t.empty = avroRecord, true
	for _, field := range s.Fields() {
		var child *Node
		if t.node != nil {
			child = t.node.child([]byte(field.Name()))
		}
		part := c.compile(field.Type(), child)
		t.empty = t.empty && part.empty && part != t
		t.parts = append(t.parts, part)
	}
}
