package source

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/hamba/avro/v2/ocf"
)

// avroTable reads the fields of the records of an Avro object container file. A field of a nested
// record is named by its path with dots. Arrays and maps are not columns.
type avroTable struct {
	file    string
	from    *failing
	records *ocf.Decoder
	names   []string
	columns []avroColumn
	row     int // from 1
	cells   []Cell
	text    []byte
}

// avroColumn is a field: its name, the records that contain it, and the schema of its values.
type avroColumn struct {
	name   string
	within []*avroGroup
	schema avro.Schema
}

// avroGroup is a nested record: the names of its field and of its type.
type avroGroup struct{ field, name string }

// failing keeps the error of a reader, which the library replaces by that of an early end, and whether all was read.
type failing struct {
	io.Reader
	err   error
	ended bool
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	switch {
	case err == io.EOF && n > 0:
		return n, nil // it has not been read yet
	case err == io.EOF:
		f.ended = true
	case err != nil:
		f.err = err
	}
	return n, err
}

// zoneless decodes local timestamps like all others, as in the records of a topic. The library would move them by the
// difference between UTC and the time zone of the machine.
type zoneless struct {
	avro.API
	err error
}

// NewDecoder implements avro.API.
func (z *zoneless) NewDecoder(schema avro.Schema, in io.Reader) *avro.Decoder {
	if strings.Contains(schema.String(), localTimestamp) {
		schema, z.err = unlocal(schema)
	}
	return z.API.NewDecoder(schema, in)
}

const localTimestamp = "local-timestamp-"

// unlocal returns a schema with other timestamps of the same numbers in place of local ones. It has no defaults, which do
// not matter to a reader.
func unlocal(schema avro.Schema) (avro.Schema, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	replaceLocal(tree)
	if text, err = json.Marshal(tree); err != nil {
		return nil, err
	}
	return avro.ParseBytesWithCache(text, "", &avro.SchemaCache{})
}

func replaceLocal(part any) {
	switch p := part.(type) {
	case []any:
		for _, below := range p {
			replaceLocal(below)
		}
	case map[string]any:
		if of, _ := p["logicalType"].(string); strings.HasPrefix(of, localTimestamp) {
			p["logicalType"] = strings.TrimPrefix(of, "local-")
		}
		delete(p, "default")
		for _, below := range p {
			replaceLocal(below)
		}
	}
}

// newAvro reads a container file. Errors name the file.
func newAvro(file string, in io.Reader) (Table, error) {
	from, api := &failing{Reader: in}, &zoneless{API: avro.DefaultConfig}
	records, err := ocf.NewDecoder(from, ocf.WithDecoderConfig(api))
	if from.err != nil {
		return nil, fmt.Errorf("%s: %w", file, from.err)
	}
	if err = cmp.Or(err, api.err); err != nil {
		return nil, fmt.Errorf("%s: this is not an Avro container file, or not all of one: %w", file, err)
	}
	record, ok := records.Schema().(*avro.RecordSchema)
	if !ok {
		return nil, fmt.Errorf("%s: its schema is of type %s; rows are read from one of type record", file, records.Schema().Type())
	}
	t := &avroTable{file: file, from: from, records: records}
	t.add(nil, record)
	if err := twice(t.names); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	t.cells = make([]Cell, len(t.names))
	return t, nil
}

// add adds the columns of a record that is nested in others. A record that contains itself has
// none.
func (t *avroTable) add(within []*avroGroup, record *avro.RecordSchema) {
	for _, field := range record.Fields() {
		schema := notNull(field.Type())
		if r, ok := schema.(*avro.RecordSchema); ok {
			itself := func(g *avroGroup) bool { return g.name == r.FullName() }
			if !slices.ContainsFunc(within, itself) {
				t.add(append(within[:len(within):len(within)], &avroGroup{field.Name(), r.FullName()}), r)
			}
			continue
		}
		switch schema.Type() {
		case avro.Array, avro.Map, avro.Union, avro.Null:
			continue
		}
		name := field.Name()
		for _, g := range slices.Backward(within) {
			name = g.field + "." + name
		}
		t.names = append(t.names, name)
		t.columns = append(t.columns, avroColumn{field.Name(), within, schema})
	}
}

// notNull resolves a name to its schema, and a union with null to its other branch.
func notNull(s avro.Schema) avro.Schema {
	if ref, ok := s.(*avro.RefSchema); ok {
		s = ref.Schema()
	}
	union, ok := s.(*avro.UnionSchema)
	if !ok || !union.Nullable() {
		return s
	}
	for _, branch := range union.Types() {
		if branch.Type() != avro.Null {
			return notNull(branch)
		}
	}
	return s
}

func (t *avroTable) Columns() []string { return t.names }

// Select does nothing: records are always read whole.
func (t *avroTable) Select([]int) {}

func (t *avroTable) Line() int { return t.row }

func (t *avroTable) At(line int, err error) error {
	if line == 0 || t.row == 0 {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	return &lineError{File: t.file, Line: line, Row: true, Err: err}
}

func (t *avroTable) Next() ([]Cell, error) {
	record, more, err := t.read()
	switch {
	case err != nil:
		return nil, &lineError{File: t.file, Line: t.row + 1, Row: true, Err: err}
	case !more:
		return nil, io.EOF
	}
	t.row++
	t.text = t.text[:0]
	for i, c := range t.columns {
		t.cells[i] = t.cell(c.schema, c.of(record))
	}
	return t.cells, nil
}

// read reads the next record, if there are more. The library takes a block without records for the end of the file.
func (t *avroTable) read() (record map[string]any, more bool, err error) {
	defer damaged(&err)
	for !t.records.HasNext() {
		if err := cmp.Or(t.from.err, t.records.Error()); err != nil || t.from.ended {
			return nil, false, err
		}
	}
	err = t.records.Decode(&record)
	return record, true, err
}

// of returns the column's value in a record, nil for null. The library nests a value of a union
// under the name of its type.
func (c *avroColumn) of(record map[string]any) any {
	for _, g := range c.within {
		record, _ = record[g.field].(map[string]any)
		if below, ok := record[g.name].(map[string]any); ok && len(record) == 1 {
			record = below
		}
	}
	v := record[c.name]
	if union, ok := v.(map[string]any); ok {
		for _, v = range union {
			return v
		}
	}
	return v
}

// cell converts a value of the library to a cell.
func (t *avroTable) cell(s avro.Schema, v any) Cell {
	from := len(t.text)
	text := func(typ CellType, text []byte) Cell {
		t.text = text
		return Cell{Type: typ, Text: text[from:len(text):len(text)]}
	}
	switch v := v.(type) {
	case bool:
		return text(Bool, strconv.AppendBool(t.text, v))
	case int:
		return text(Number, strconv.AppendInt(t.text, int64(v), 10))
	case int64:
		if isNanos(s) {
			return t.cell(s, time.Unix(0, v))
		}
		return text(Number, strconv.AppendInt(t.text, v, 10))
	case float32:
		if grown := appendFloat(t.text, float64(v), 32); grown != nil {
			return text(Number, grown)
		}
	case float64:
		if grown := appendFloat(t.text, v, 64); grown != nil {
			return text(Number, grown)
		}
	case string:
		return text(String, append(t.text, v...))
	case []byte:
		return text(String, append(t.text, v...))
	case time.Duration: // a time of day, as the number that it is in Avro: time-millis is an int, time-micros a long
		number := v.Milliseconds()
		if s.Type() == avro.Long {
			number = v.Microseconds()
		}
		return text(Number, strconv.AppendInt(t.text, number, 10))
	case time.Time:
		cell := text(Time, v.UTC().AppendFormat(t.text, time.RFC3339Nano))
		cell.Ms = v.UnixMilli()
		return cell
	case *big.Rat:
		scale := 0
		if logical, ok := s.(avro.LogicalTypeSchema); ok {
			scale = logical.Logical().(*avro.DecimalLogicalSchema).Scale()
		}
		return text(Number, append(t.text, v.FloatString(scale)...))
	default:
		if of := reflect.ValueOf(v); of.Kind() == reflect.Array { // a fixed is one of bytes
			content := make([]byte, of.Len())
			reflect.Copy(reflect.ValueOf(content), of)
			if isUUID(s) {
				return text(String, appendUUID(t.text, content))
			}
			return text(String, append(t.text, content...))
		}
	}
	return Cell{}
}

// isNanos reports whether a long is a timestamp in nanoseconds. The library knows only coarser ones.
func isNanos(s avro.Schema) bool {
	long, ok := s.(*avro.PrimitiveSchema)
	return ok && (long.Prop("logicalType") == "timestamp-nanos" || long.Prop("logicalType") == localTimestamp+"nanos")
}

// isUUID reports whether a fixed has the digits of a UUID. The library knows that type only of strings.
func isUUID(s avro.Schema) bool {
	fixed, ok := s.(*avro.FixedSchema)
	return ok && fixed.Size() == 16 && fixed.Prop("logicalType") == "uuid"
}
