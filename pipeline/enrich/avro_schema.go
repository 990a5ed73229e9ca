package enrich

import (
	"encoding/json"
	"strconv"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// decimalPrecision is the precision of decimals, which is the greatest that most systems take. It bounds sums: larger
// ones take more than 10^18 events.
const decimalPrecision = 38

// Schema returns the schema in Avro of enriched events: a record Enriched of an Event and Features. Everything that
// definitions may add or remove is null by default, so schemas of different definitions read each other's records. The
// subject follows Confluent's TopicNameStrategy.
func Schema(e *features.Enrichment) (subject, schema string) {
	types := avroTypes{}
	event, answers := []avroField{}, []avroField{}
	for _, f := range e.Stream.Fields {
		event = append(event, optional(f.Name, types.of(f.Type, f.Scale)))
	}
	for _, f := range e.Service.Features {
		answers = append(answers, optional(f.Name, types.answer(f)))
	}
	root := avroRecord{Type: "record", Name: "Enriched", Namespace: "weir." + e.Stream.Name, Fields: []avroField{
		{Name: "event", Type: types.record("Event", event...)},
		{Name: "features", Type: types.record("Features", answers...)},
	}}
	text, err := json.Marshal(root)
	if err != nil {
		panic(err) // there are only texts and numbers in it
	}
	return e.Topic + "-value", string(text)
}

type avroRecord struct {
	Type      string      `json:"type"`
	Name      string      `json:"name"`
	Namespace string      `json:"namespace,omitempty"`
	Fields    []avroField `json:"fields"`
}

type avroField struct {
	Name    string          `json:"name"`
	Type    any             `json:"type"`
	Default json.RawMessage `json:"default,omitempty"`
}

// optional returns a field that may be null, and is by default.
func optional(name string, of any) avroField {
	return avroField{name, nullable(of), json.RawMessage("null")}
}

func nullable(of any) any { return []any{"null", of} }

// avroTypes holds the names of the records that a schema has defined. A record is defined at its first use, and named
// afterwards.
type avroTypes map[string]bool

func (t avroTypes) record(name string, fields ...avroField) any {
	if t[name] {
		return name
	}
	t[name] = true
	return avroRecord{Type: "record", Name: name, Fields: fields}
}

// of returns the type of a value that is not a list.
func (t avroTypes) of(v value.Type, scale uint8) any {
	switch v {
	case value.Int:
		return "long"
	case value.Float:
		return "double"
	case value.Bool:
		return "boolean"
	case value.Decimal:
		return map[string]any{"type": "bytes", "logicalType": "decimal", "precision": decimalPrecision, "scale": scale}
	case value.Timestamp:
		return map[string]any{"type": "long", "logicalType": "timestamp-millis"}
	case value.Location:
		return t.record("Location", avroField{Name: "lat", Type: "double"}, avroField{Name: "lon", Type: "double"})
	default:
		return "string"
	}
}

// typeNames maps types to their parts of records' names; a decimal's ends with its scale.
var typeNames = map[value.Type]string{
	value.String: "String", value.Int: "Long", value.Float: "Double", value.Bool: "Boolean",
	value.Decimal: "Decimal", value.Timestamp: "Timestamp", value.Location: "Location",
}

// answer returns the type of a feature's answers: a record for each type and shape of values, with the same content as
// an answer in JSON.
func (t avroTypes) answer(f *features.Feature) any {
	v := t.of(f.Type(), f.Scale())
	name, shape := typeNames[f.Type()], ""
	if f.Type() == value.Decimal {
		name += strconv.Itoa(int(f.Scale()))
	}
	switch f.Shape() {
	case aggregate.List:
		shape, v = "List", array(nullable(v))
	case aggregate.Counts:
		shape, v = "Counts", array(t.record(name+"Count", avroField{Name: "value", Type: nullable(v)}, avroField{Name: "count", Type: "long"}))
	case aggregate.Bins:
		shape, v = "Bins", array(t.record(name+"Bin", avroField{Name: "from", Type: nullable(v)}, avroField{Name: "to", Type: nullable(v)}, avroField{Name: "count", Type: "long"}))
	case aggregate.Categories:
		shape, v = "Categories", map[string]any{"type": "map", "values": nullable(v)}
	}
	moment := t.of(value.Timestamp, 0)
	return t.record(name+shape+"Answer", optional("value", v), avroField{Name: "status", Type: "string"},
		optional("from", moment), optional("to", moment), optional("exact", "boolean"),
		optional("standard_error", "double"), optional("relative_error", "double"), optional("false_positive_rate", "double"),
		optional("uncertain", "long"), optional("capped", "boolean"), optional("later_events", "boolean"), optional("complete_since", moment),
		optional("filled", "double"), optional("complete_at", moment), optional("oldest", moment))
}

func array(items any) any { return map[string]any{"type": "array", "items": items} }
