package record

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/hamba/avro/v2"
)

// avroCompiler makes the types that read a schema's records.
type avroCompiler struct {
	passed map[avro.Schema]*avroType // unused named types; they may be recursive
}

// compileAvro makes the type that reads records of a schema for a tree. The reader's schema, which may be nil, has
// aliases of fields and defaults of fields that the schema lacks.
func compileAvro(s, reader avro.Schema, tree *Node) *avroType {
	c := &avroCompiler{passed: map[avro.Schema]*avroType{}}
	return c.compile(s, reader, tree)
}

func (c *avroCompiler) compile(s, reader avro.Schema, n *Node) *avroType {
	s = plainAvro(s)
	if n == nil {
		if t := c.passed[s]; t != nil {
			return t
		}
	}
	logical := avroLogical(s)
	t := &avroType{encoding: avroEncodings[s.Type()], node: n, unit: avroUnits[logical], empty: s.Type() == avro.Null}
	if _, ok := s.(avro.NamedSchema); ok && n == nil {
		c.passed[s] = t
	}
	switch s := s.(type) {
	case *avro.PrimitiveSchema:
		if logical == string(avro.Decimal) {
			t.encoding, t.scale = avroDecimal, s.Logical().(*avro.DecimalLogicalSchema).Scale()
		}
	case *avro.FixedSchema:
		t.encoding, t.size, t.empty = avroFixed, s.Size(), s.Size() == 0
		t.uuid = logical == "uuid" && t.size == uuidBytes
		if logical == string(avro.Decimal) {
			t.encoding, t.scale = avroFixedDecimal, s.Logical().(*avro.DecimalLogicalSchema).Scale()
		}
	case *avro.EnumSchema:
		t.encoding = avroEnum
		for _, symbol := range s.Symbols() {
			t.symbols = append(t.symbols, []byte(symbol))
		}
	case *avro.UnionSchema:
		t.encoding = avroUnion
		for _, branch := range s.Types() {
			t.parts = append(t.parts, c.compile(branch, reader, n))
		}
	case *avro.RecordSchema:
		c.record(t, s, avroRecordOf(reader))
	case *avro.ArraySchema:
		t.encoding, t.parts = avroArray, []*avroType{c.compile(s.Items(), nil, nil)}
	case *avro.MapSchema:
		c.values(t, s, reader)
	}
	return t
}

func (c *avroCompiler) values(t *avroType, s *avro.MapSchema, reader avro.Schema) {
	var of avro.Schema
	if m, ok := reader.(*avro.MapSchema); ok {
		of = m.Values()
	}
	t.encoding = avroMap
	if t.node != nil {
		for _, child := range t.node.children {
			t.parts = append(t.parts, c.compile(s.Values(), of, child))
		}
	}
	t.parts = append(t.parts, c.compile(s.Values(), nil, nil))
}

func (c *avroCompiler) record(t *avroType, s, reader *avro.RecordSchema) {
	t.encoding, t.empty = avroRecord, true
	found := map[*Node]bool{}
	for _, field := range s.Fields() {
		var child *Node
		var as avro.Schema
		if t.node != nil {
			name := field.Name()
			// A record may have the field under its new name, too, and then that counts.
			if f := readerField(reader, name); f != nil && (f.Name() == name || fieldNamed(s, f.Name()) == nil) {
				name, as = f.Name(), f.Type()
			}
			child = t.node.child([]byte(name))
			found[child] = true
		}
		part := c.compile(field.Type(), as, child)
		t.empty = t.empty && part.empty && part != t
		t.parts = append(t.parts, part)
	}
	if t.node == nil || reader == nil {
		return
	}
	for _, child := range t.node.children {
		if f := readerField(reader, child.name); !found[child] && f != nil && f.HasDefault() {
			t.lacking = defaultOf(t.lacking, f.Type(), f.Default(), child)
		}
	}
}

// readerField returns the reader's field for a writer's field, by its name or an alias; nil if there is none.
func readerField(reader *avro.RecordSchema, name string) *avro.Field {
	if reader == nil {
		return nil
	}
	if f := fieldNamed(reader, name); f != nil {
		return f
	}
	return fieldOf(reader, func(f *avro.Field) bool { return slices.Contains(f.Aliases(), name) })
}

func fieldNamed(s *avro.RecordSchema, name string) *avro.Field {
	return fieldOf(s, func(f *avro.Field) bool { return f.Name() == name })
}

func fieldOf(s *avro.RecordSchema, is func(*avro.Field) bool) *avro.Field {
	i := slices.IndexFunc(s.Fields(), is)
	if i < 0 {
		return nil
	}
	return s.Fields()[i]
}

// avroRecordOf returns the record of the reader's schema, or of its union, that a writer's record is read as; nil if
// there is none.
func avroRecordOf(reader avro.Schema) *avro.RecordSchema {
	if reader == nil {
		return nil
	}
	switch s := plainAvro(reader).(type) {
	case *avro.RecordSchema:
		return s
	case *avro.UnionSchema:
		for _, branch := range s.Types() {
			if r := avroRecordOf(branch); r != nil {
				return r
			}
		}
	}
	return nil
}

// avroDefault is the value of a field that a record's schema lacks.
type avroDefault struct {
	slot  int
	datum Datum
}

// defaultOf appends the default of a field as the values of a node and of those below it.
func defaultOf(list []avroDefault, s avro.Schema, def any, n *Node) []avroDefault {
	s = plainAvro(s)
	if u, ok := s.(*avro.UnionSchema); ok {
		s = plainAvro(u.Types()[0]) // a union's default has its first type
	}
	d := Datum{Unit: avroUnits[avroLogical(s)]}
	switch v := def.(type) {
	case nil:
		d.Type = Null
	case bool:
		d.Type = False
		if v {
			d.Type = True
		}
	case string:
		d.Type, d.Text = String, []byte(v)
	case int:
		d.Type, d.Text = Number, strconv.AppendInt(nil, int64(v), 10)
	case int64:
		d.Type, d.Text = Number, strconv.AppendInt(nil, v, 10)
	case float32:
		d.Type, d.Text = Number, appendFloat(nil, float64(v), 32)
	case float64:
		d.Type, d.Text = Number, appendFloat(nil, v, 64)
	case []byte:
		d.Type, d.Text = bytesDefault(s, v)
	case map[string]any:
		d.Type = Object
		for _, child := range n.children {
			if part, ok := v[child.name]; ok {
				list = defaultOf(list, partOf(s, child.name), part, child)
			}
		}
	default: // hamba's own type for null within a record, an array of bytes for fixed, or a list
		d.Type = Array
		switch r := reflect.ValueOf(v); r.Kind() {
		case reflect.Struct:
			d.Type = Null
		case reflect.Array:
			content := make([]byte, r.Len())
			reflect.Copy(reflect.ValueOf(content), r)
			d.Type, d.Text = bytesDefault(s, content)
		}
	}
	return append(list, avroDefault{n.slot, d})
}

// bytesDefault returns a default of bytes: a decimal, or a text.
func bytesDefault(s avro.Schema, content []byte) (DatumType, []byte) {
	if l, ok := s.(avro.LogicalTypeSchema); ok && avroLogical(s) == string(avro.Decimal) {
		return Number, appendDecimal(nil, content, l.Logical().(*avro.DecimalLogicalSchema).Scale())
	}
	return String, content
}

// partOf returns the schema of a record's field or of a map's values.
func partOf(s avro.Schema, name string) avro.Schema {
	switch s := s.(type) {
	case *avro.RecordSchema:
		if f := readerField(s, name); f != nil {
			return f.Type()
		}
	case *avro.MapSchema:
		return s.Values()
	}
	return avro.NewNullSchema()
}
