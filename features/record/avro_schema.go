package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// avroSchema is a type of an Avro schema. All uses of a named type share one, so that a type may contain itself.
// Schemas are hostile: whoever writes records may register them, and files bring their own.
type avroSchema struct {
	kind    string // the name of a primitive or complex type; errors are records
	name    string // of a record, an enum and a fixed, with its namespace
	logical string // the logical type; empty if it is none that the kind can have
	scale   int    // of a decimal
	size    int    // of a fixed, in bytes
	symbols []string
	fields  []*avroField
	parts   []*avroSchema // branches of a union, the items of an array, the values of a map
}

type avroField struct {
	name, of   string // its record's name
	aliases    []string
	schema     *avroSchema
	def        any // as json.Decoder reads it, with json.Number
	hasDefault bool
}

// avroLogicals are the logical types of kinds. Others do not count, as the specification says.
var avroLogicals = map[string][]string{
	"int": {"date", "time-millis"},
	"long": {"time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos",
		"local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"},
	"string": {"uuid"}, "bytes": {"decimal"}, "fixed": {"decimal", "uuid", "duration"},
}

// maxPrecision is the greatest precision of decimals, in digits, and maxDecimal that of their encoding, in bytes: a
// number is written in decimal before a field refuses it, in a time that grows faster than its digits.
const (
	maxPrecision = 1000
	maxDecimal   = 512
)

// avroParser reads schemas that refer to each other's types.
type avroParser struct {
	known    map[string]*avroSchema // of this schema and the ones before it
	defined  map[string]bool        // in this schema
	defaults []*avroField           // those to be checked once all types are known
}

// parse reads the text of a schema.
func (p *avroParser) parse(text []byte) (*avroSchema, error) {
	p.defined, p.defaults = map[string]bool{}, nil
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("it is not JSON: something follows its end")
	}
	s, err := p.schema(tree, "")
	if err != nil {
		return nil, err
	}
	for _, f := range p.defaults {
		if !f.schema.accepts(f.def) {
			return nil, fmt.Errorf("the default of field %s of %s does not fit its type, %s", f.name, f.of, f.schema.kind)
		}
	}
	return s, nil
}

// schema reads a type, within a namespace.
func (p *avroParser) schema(tree any, namespace string) (*avroSchema, error) {
	switch t := tree.(type) {
	case string:
		return p.named(t, namespace)
	case []any:
		return p.union(t, namespace)
	case map[string]any:
		kind, ok := t["type"].(string)
		if !ok {
			return p.schema(t["type"], namespace)
		}
		return p.complex(kind, t, namespace)
	}
	return nil, errors.New("a type is missing, or neither a name, a list nor an object")
}

// named returns the type of a name.
func (p *avroParser) named(name, namespace string) (*avroSchema, error) {
	if _, ok := avroEncodings[name]; ok {
		return &avroSchema{kind: name}, nil
	}
	if s := p.known[avroFullName(name, namespace)]; s != nil {
		return s, nil
	}
	if s := p.known[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("unknown type: %s", name)
}

func (p *avroParser) union(branches []any, namespace string) (*avroSchema, error) {
	s := &avroSchema{kind: "union"}
	for _, b := range branches {
		part, err := p.schema(b, namespace)
		if err != nil {
			return nil, err
		}
		if part.kind == "union" {
			return nil, errors.New("a union is a branch of a union")
		}
		s.parts = append(s.parts, part)
	}
	if len(s.parts) == 0 {
		return nil, errors.New("a union has no branches")
	}
	return s, nil
}

// complex reads a type that an object describes.
func (p *avroParser) complex(kind string, t map[string]any, namespace string) (s *avroSchema, err error) {
	switch kind {
	case "record", "error":
		return p.record(t, namespace)
	case "enum":
		if s, _, err = p.define(kind, t, namespace); err != nil {
			return nil, err
		}
		if s.symbols, err = avroNames(t, "symbols"); err == nil && len(s.symbols) == 0 {
			err = fmt.Errorf("enum %s has no symbols", s.name)
		}
	case "fixed":
		if s, _, err = p.define(kind, t, namespace); err != nil {
			return nil, err
		}
		var ok bool
		if s.size, ok = avroWhole(t["size"]); !ok {
			err = fmt.Errorf("the size of fixed %s is not a number of bytes", s.name)
		}
	case "array":
		s, err = p.around(kind, t["items"], namespace)
	case "map":
		s, err = p.around(kind, t["values"], namespace)
	default:
		if s, err = p.named(kind, namespace); s == nil || s.name != "" {
			return s, err
		}
	}
	if err != nil {
		return nil, err
	}
	return s, s.setLogical(t)
}

// around makes an array or a map.
func (p *avroParser) around(kind string, of any, namespace string) (*avroSchema, error) {
	part, err := p.schema(of, namespace)
	return &avroSchema{kind: kind, parts: []*avroSchema{part}}, err
}

// define makes a named type. Its namespace holds for what is within it.
func (p *avroParser) define(kind string, t map[string]any, namespace string) (s *avroSchema, within string, err error) {
	name, _ := t["name"].(string)
	if given, ok := t["namespace"].(string); ok {
		namespace = given
	}
	name = avroFullName(name, namespace)
	for part := range strings.SplitSeq(name, ".") {
		if !isAvroName(part) {
			return nil, "", fmt.Errorf("invalid name of type %s: %q", kind, name)
		}
	}
	if p.defined[name] {
		return nil, "", fmt.Errorf("type %s is defined twice", name)
	}
	s = &avroSchema{kind: kind, name: name}
	p.defined[name], p.known[name] = true, s
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		within = name[:dot]
	}
	return s, within, nil
}

func (p *avroParser) record(t map[string]any, namespace string) (*avroSchema, error) {
	s, within, err := p.define("record", t, namespace)
	if err != nil {
		return nil, err
	}
	fields, ok := t["fields"].([]any)
	if !ok {
		return nil, fmt.Errorf("record %s has no list of fields", s.name)
	}
	for _, of := range fields {
		f, err := p.field(s.name, of, within)
		if err != nil {
			return nil, err
		}
		if s.field(f.name) != nil {
			return nil, fmt.Errorf("record %s has field %s twice", s.name, f.name)
		}
		s.fields = append(s.fields, f)
	}
	return s, nil
}

func (p *avroParser) field(record string, tree any, namespace string) (*avroField, error) {
	t, _ := tree.(map[string]any)
	name, _ := t["name"].(string)
	if !isAvroName(name) {
		return nil, fmt.Errorf("invalid name of a field of record %s: %q", record, name)
	}
	schema, err := p.schema(t["type"], namespace)
	if err != nil {
		return nil, err
	}
	f := &avroField{name: name, of: record, schema: schema}
	if f.aliases, err = avroNames(t, "aliases"); err != nil {
		return nil, err
	}
	if f.def, f.hasDefault = t["default"]; f.hasDefault {
		p.defaults = append(p.defaults, f)
	}
	return f, nil
}

// setLogical sets the logical type that an object gives, if it is valid.
func (s *avroSchema) setLogical(t map[string]any) error {
	name, _ := t["logicalType"].(string)
	if !slices.Contains(avroLogicals[s.kind], name) || name == "uuid" && s.kind == "fixed" && s.size != uuidBytes {
		return nil
	}
	if name == "decimal" {
		precision, ok := avroWhole(t["precision"])
		scale, given := avroWhole(t["scale"])
		if !ok || precision == 0 || t["scale"] != nil && !given || scale > precision {
			return nil
		}
		if precision > maxPrecision {
			return fmt.Errorf("a decimal has a precision of %d digits; at most %d are read", precision, maxPrecision)
		}
		s.scale = scale
	}
	s.logical = name
	return nil
}

// field returns the field of a name, nil if there is none.
func (s *avroSchema) field(name string) *avroField {
	return s.fieldOf(func(f *avroField) bool { return f.name == name })
}

func (s *avroSchema) fieldOf(is func(*avroField) bool) *avroField {
	if i := slices.IndexFunc(s.fields, is); i >= 0 {
		return s.fields[i]
	}
	return nil
}

// accepts reports whether a value in JSON may be a default of the type.
func (s *avroSchema) accepts(v any) bool {
	switch s.kind {
	case "union":
		return s.branchOf(v) != nil
	case "record":
		m, ok := v.(map[string]any)
		return ok && !slices.ContainsFunc(s.fields, func(f *avroField) bool {
			given, ok := m[f.name]
			return ok && !f.schema.accepts(given) || !ok && !f.hasDefault
		})
	case "array":
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { return !s.parts[0].accepts(v) })
	case "map":
		m, ok := v.(map[string]any)
		for _, v := range m {
			ok = ok && s.parts[0].accepts(v)
		}
		return ok
	}
	return s.acceptsScalar(v)
}

func (s *avroSchema) acceptsScalar(v any) bool {
	switch v := v.(type) {
	case nil:
		return s.kind == "null"
	case bool:
		return s.kind == "boolean"
	case string:
		content, ok := latin1(v)
		return s.kind == "string" || s.kind == "bytes" && ok || s.kind == "fixed" && ok && len(content) == s.size ||
			s.kind == "enum" && slices.Contains(s.symbols, v)
	case json.Number:
		bits := map[string]int{"int": 32, "float": 32, "long": 64, "double": 64}[s.kind]
		if s.kind == "int" || s.kind == "long" {
			_, err := strconv.ParseInt(v.String(), 10, bits)
			return err == nil
		}
		_, err := strconv.ParseFloat(v.String(), bits)
		return err == nil && bits > 0
	}
	return false
}

// branchOf returns the first branch of a union that accepts a default, nil if none does.
func (s *avroSchema) branchOf(v any) *avroSchema {
	if i := slices.IndexFunc(s.parts, func(b *avroSchema) bool { return b.accepts(v) }); i >= 0 {
		return s.parts[i]
	}
	return nil
}

// latin1 returns the bytes that a text in JSON stands for: its code points.
func latin1(text string) (content []byte, ok bool) {
	for _, r := range text {
		if r > 0xff || r == utf8.RuneError {
			return nil, false
		}
		content = append(content, byte(r))
	}
	return content, true
}

// avroNames returns a list of texts; none if there is none.
func avroNames(t map[string]any, attribute string) (names []string, err error) {
	list, ok := t[attribute].([]any)
	if !ok && t[attribute] != nil {
		return nil, fmt.Errorf("%s is not a list", attribute)
	}
	for _, v := range list {
		name, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%s is not a list of texts", attribute)
		}
		names = append(names, name)
	}
	return names, nil
}

// avroWhole returns a number that is not negative, below 2^31.
func avroWhole(v any) (int, bool) {
	n, ok := v.(json.Number)
	whole, err := strconv.ParseInt(n.String(), 10, 32)
	return int(whole), ok && err == nil && whole >= 0
}

// avroFullName returns a name with its namespace.
func avroFullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

func isAvroName(name string) bool {
	for i, c := range []byte(name) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
