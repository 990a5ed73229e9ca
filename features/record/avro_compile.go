package record

import (
	"encoding/json"
	"slices"
)

// avroCompiler makes the types that read a schema's records.
type avroCompiler struct {
	compiled map[avroUse]*avroType
	made     int // types
	most     int // beyond which no more are made; 0 for any number
}

// avroUse is a use of a named type, read as one of the reader's schema for a node. It is compiled once: records may
// contain themselves, and a short schema may name a type more often than there is memory for.
type avroUse struct {
	schema, reader *avroSchema
	node           *Node
}

// compileAvro makes the type that reads records of a schema for a tree. The reader's schema, which may be nil, has
// aliases of fields and defaults of fields that the schema lacks.
func compileAvro(s, reader *avroSchema, tree *Node) *avroType {
	t, _ := compileAvroUpTo(0, s, reader, tree)
	return t
}

// compileAvroUpTo is compileAvro for a tree that the schema has made itself. It fails if that takes more types than a number, 0
// for any: a short schema of unions and maps can ask for more than there is memory for.
func compileAvroUpTo(most int, s, reader *avroSchema, tree *Node) (t *avroType, ok bool) {
	c := &avroCompiler{compiled: map[avroUse]*avroType{}, most: most}
	t = c.compile(s, reader, tree)
	return t, most == 0 || c.made <= most
}

func (c *avroCompiler) compile(s, reader *avroSchema, n *Node) *avroType {
	use := avroUse{s, reader, n}
	if t := c.compiled[use]; t != nil {
		return t
	}
	if c.made++; c.most > 0 && c.made > c.most {
		return &avroType{}
	}
	t := &avroType{encoding: avroEncodings[s.kind], node: n, unit: avroUnits[s.logical], scale: s.scale, size: s.size}
	if s.name != "" {
		c.compiled[use] = t
	}
	switch s.kind {
	case "null":
		t.empty = true
	case "bytes":
		if s.logical == "decimal" {
			t.encoding = avroDecimal
		}
	case "fixed":
		t.encoding, t.empty, t.uuid = avroFixed, s.size == 0, s.logical == "uuid"
		if s.logical == "decimal" {
			t.encoding = avroFixedDecimal
		}
	case "enum":
		t.encoding = avroEnum
		for _, symbol := range s.symbols {
			t.symbols = append(t.symbols, []byte(symbol))
		}
	case "union":
		t.encoding = avroUnion
		for _, branch := range s.parts {
			t.parts = append(t.parts, c.compile(branch, reader, n))
		}
	case "record":
		c.record(t, s, avroRecordOf(reader))
	case "array":
		t.encoding, t.parts = avroArray, []*avroType{c.compile(s.parts[0], nil, nil)}
	case "map":
		c.values(t, s, reader)
	}
	return t
}

func (c *avroCompiler) values(t *avroType, s, reader *avroSchema) {
	var of *avroSchema
	if reader != nil && reader.kind == "map" {
		of = reader.parts[0]
	}
	t.encoding = avroMap
	if t.node != nil {
		for _, child := range t.node.children {
			t.parts = append(t.parts, c.compile(s.parts[0], of, child))
		}
	}
	t.parts = append(t.parts, c.compile(s.parts[0], nil, nil))
}

// record compiles the fields. Those that take no bytes are left out, unless they are used: a schema of a few lines may
// nest more of them than can be counted. A record that contains itself without an end is not empty, so it is refused as
// nested too deeply.
func (c *avroCompiler) record(t *avroType, s, reader *avroSchema) {
	t.encoding = avroRecord
	found, empty := map[*Node]bool{}, true
	for _, field := range s.fields {
		var child *Node
		var as *avroSchema
		if t.node != nil {
			name := field.name
			// A record may have the field under its new name, too, and then that counts.
			if f := readerField(reader, name); f != nil && (f.name == name || s.field(f.name) == nil) {
				name, as = f.name, f.schema
			}
			child = t.node.child([]byte(name))
			found[child] = true
		}
		part := c.compile(field.schema, as, child)
		empty = empty && part.empty
		if child != nil || !part.empty {
			t.parts = append(t.parts, part)
		}
	}
	t.empty = empty
	if t.node == nil || reader == nil {
		return
	}
	for _, child := range t.node.children {
		if f := readerField(reader, child.name); !found[child] && f != nil && f.hasDefault {
			t.lacking = defaultOf(t.lacking, f.schema, f.def, child)
		}
	}
}

// readerField returns the reader's field for a writer's field, by its name or an alias; nil if there is none.
func readerField(reader *avroSchema, name string) *avroField {
	if reader == nil {
		return nil
	}
	if f := reader.field(name); f != nil {
		return f
	}
	return reader.fieldOf(func(f *avroField) bool { return slices.Contains(f.aliases, name) })
}

// avroRecordOf returns the record of the reader's schema, or of its union, that a writer's record is read as; nil if
// there is none.
func avroRecordOf(reader *avroSchema) *avroSchema {
	if reader == nil || reader.kind == "record" {
		return reader
	}
	if reader.kind == "union" {
		for _, branch := range reader.parts {
			if branch.kind == "record" {
				return branch
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

// defaultOf appends the default of a field, which its type accepts, as the values of a node and of those below it.
func defaultOf(list []avroDefault, s *avroSchema, def any, n *Node) []avroDefault {
	if s.kind == "union" {
		s = s.branchOf(def)
	}
	d := Datum{Unit: avroUnits[s.logical]}
	switch v := def.(type) {
	case nil:
		d.Type = Null
	case bool:
		d.Type = False
		if v {
			d.Type = True
		}
	case string:
		d.Type, d.Text = textDefault(s, v)
	case json.Number:
		d.Type, d.Text = Number, []byte(v.String())
		if s.kind == "float" || s.kind == "double" {
			f, _ := v.Float64()
			d.Text = appendFloat(nil, f, map[string]int{"float": 32, "double": 64}[s.kind])
		}
	case []any:
		d.Type = Array
	case map[string]any:
		d.Type = Object
		for _, child := range n.children {
			list = partDefault(list, s, v, child)
		}
	}
	return append(list, avroDefault{n.slot, d})
}

// partDefault appends what a default of a record or of a map has for a node below its own. A field that it lacks has its
// own default.
func partDefault(list []avroDefault, s *avroSchema, def map[string]any, n *Node) []avroDefault {
	part, given := def[n.name]
	switch f := readerField(s, n.name); {
	case s.kind == "map" && given:
		return defaultOf(list, s.parts[0], part, n)
	case f != nil && given:
		return defaultOf(list, f.schema, part, n)
	case f != nil && f.hasDefault:
		return defaultOf(list, f.schema, f.def, n)
	}
	return list
}

// textDefault returns a default that is a text in JSON.
func textDefault(s *avroSchema, text string) (DatumType, []byte) {
	if s.kind != "bytes" && s.kind != "fixed" {
		return String, []byte(text)
	}
	content, _ := latin1(text)
	switch s.logical {
	case "decimal":
		return Number, appendDecimal(nil, content, s.scale)
	case "uuid":
		return String, appendUUID(nil, content)
	}
	return String, content
}
