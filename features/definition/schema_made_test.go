package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/value"
)

// schema is a JSON Schema, or a part of one.
type schema map[string]any

// madeSchema makes docs/schema.json, the JSON Schema (draft 2020-12) of a definitions file, from the tables that Load
// uses. It checks the shape of a file (keys, names, types, units and durations), but neither references, nor
// expressions, nor the arguments of one-line forms.
func madeSchema() []byte {
	s := object(schema{
		"streams":  namedBy(namePattern, ref("stream")),
		"tables":   namedBy(namePattern, ref("table")),
		"lists":    namedBy(namePattern, ref("list")),
		"features": namedBy(namePattern, ref("feature")),
		"services": namedBy(namePattern, described(schema{
			"type": "array", "items": ref("name"), "minItems": 1, "uniqueItems": true,
		}, "features that are asked for as one")),
		"macros": namedBy(macroPattern, ref("macro")),
	})
	s["type"] = []string{"object", "null"}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Definitions of features for Weir"
	s["$defs"] = schema{
		"name":      schema{"type": "string", "pattern": namePattern},
		"text":      schema{"type": []string{"string", "number", "boolean"}, "minLength": 1},
		"path":      schema{"type": "string", "pattern": `^([^.]+(\.[^.]+)*|.*\[["'].*["']\].*)$`},
		"type":      typeSchema(),
		"duration":  schema{"type": "string", "minLength": 1, "pattern": `^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$`},
		"stream":    streamSchema(),
		"table":     tableSchema(),
		"list":      listSchema(),
		"timestamp": timestampSchema(),
		"format":    formatSchema(),
		"enrich":    enrichSchema(),
		"field":     fieldSchema(),
		"oneLine":   described(schema{"type": "string", "pattern": `^\s*[A-Za-z_][A-Za-z0-9_]*\s*\([\s\S]+\)\s*$`}, "FUNCTION(window, stream, arguments…, name=value…)"),
		"window":    windowSchema(),
		"feature":   schema{"anyOf": []schema{ref("oneLine"), ref("longForm"), ref("derived")}},
		"longForm":  longFormSchema(),
		"derived":   derivedSchema(),
		"macro":     schema{"anyOf": []schema{ref("oneLine"), bodySchema(longFormSchema()), bodySchema(derivedSchema())}},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		panic(err) // maps, lists and texts only
	}
	return b.Bytes()
}

const (
	nameLetters  = `[A-Za-z_][A-Za-z0-9_]*`
	namePattern  = "^" + nameLetters + "$"
	macroPattern = `^\s*` + nameLetters + `\s*\(\s*` + nameLetters + `(\s*,\s*` + nameLetters + `)*\s*\)\s*$`
)

func ref(name string) schema { return schema{"$ref": "#/$defs/" + name} }

// described adds a description, which editors show.
func described(s schema, text string) schema {
	s["description"] = text
	return s
}

// object returns the schema of a mapping with only these keys.
func object(properties schema, required ...string) schema {
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// namedBy returns the schema of a mapping from names to definitions.
func namedBy(pattern string, definition schema) schema {
	return schema{"type": "object", "propertyNames": schema{"pattern": pattern}, "additionalProperties": definition}
}

// wholeNumber returns the schema of a whole number, which may also be a string.
func wholeNumber(least, most int) schema {
	return schema{"anyOf": []schema{
		{"type": "integer", "minimum": least, "maximum": most},
		{"type": "string", "pattern": "^[0-9]+$"},
	}}
}

// oneWord returns the schema of one of these words, in lower or upper case.
func oneWord(words ...string) schema {
	var blind []string
	for _, w := range words {
		var b strings.Builder
		for _, r := range w {
			if lower, upper := strings.ToLower(string(r)), strings.ToUpper(string(r)); lower != upper {
				fmt.Fprintf(&b, "[%s%s]", upper, lower)
				continue
			}
			b.WriteRune(r)
		}
		blind = append(blind, b.String())
	}
	return schema{"anyOf": []schema{{"enum": words}, {"type": "string", "pattern": "^(" + strings.Join(blind, "|") + ")$"}}}
}

func typeSchema() schema {
	var names []string
	for t := value.String; t <= value.Location; t++ {
		names = append(names, t.String())
	}
	return schema{"enum": names}
}

func streamSchema() schema {
	properties := schema{
		"topic":        described(topicSchema(), "Kafka topic; several streams may share one"),
		"topics":       topicsSchema(),
		"match":        described(ref("text"), "condition over the record that picks the stream's events"),
		"format":       ref("format"),
		"timestamp":    ref("timestamp"),
		"id":           described(ref("path"), "path of the event's ID"),
		"remember_ids": described(ref("duration"), "how long an entity remembers the IDs of its events, so that a pending event that has already arrived is not counted twice; needs id"),
		"dedup":        described(ref("duration"), "for how long before a record an earlier one of its partition with the same ID makes it a repetition, which does not count; "+window.FormatDuration(record.MaxDedup)+" at most; needs id"),
		"fields":       fieldsSchema(),
		"max_bytes":    described(maxBytesSchema(), "max_bytes of fields that do not set their own; "+strconv.Itoa(value.MaxText)+" by default"),
		"max_future":   described(ref("duration"), "how far the time of an event may be after the time of its record; "+window.FormatDuration(defaultMaxFuture)+" by default"),
		"lenient":      described(truthSchema(), "takes texts as the numbers, bools and times since 1970 that they hold, in the event's time and all fields"),
		"each":         described(ref("path"), "path of an array, of which each element makes an event"),
		"late":         described(schema{"enum": lateWays}, "what happens to events that are too late for some of their features"),
		"enrich":       described(ref("enrich"), "writes each event, with its features at that moment, to a topic"),
	}
	s := object(only(properties, streamKeys), "fields")
	s["oneOf"] = []schema{{"required": streamNeeds}, {"required": []string{"topics"}}} // each of which may have its own timestamp
	s["dependentRequired"] = schema{"remember_ids": []string{"id"}, "dedup": []string{"id"}}
	return s
}

func topicSchema() schema { return schema{"type": "string", "pattern": topicName.String()} }

// topicsSchema returns the schema of a stream's topics: a list, or what differs in each.
func topicsSchema() schema {
	reading := object(only(fieldSchema()["properties"].(schema), readingKeys))
	reading["not"] = schema{"required": []string{"unit", "layout"}}
	time := object(only(timestampSchema()["anyOf"].([]schema)[1]["properties"].(schema), timestampKeys))
	time["not"] = reading["not"]
	in := object(only(schema{
		"match":     described(ref("text"), "condition over the record that picks the stream's events"),
		"format":    ref("format"),
		"timestamp": schema{"anyOf": []schema{ref("path"), time}},
		"id":        ref("path"),
		"fields":    namedBy(namePattern, schema{"anyOf": []schema{ref("path"), reading}}),
	}, topicKeys))
	in["type"] = []string{"object", "null"}
	byName := namedBy(topicName.String(), described(in, "what differs in this topic from the stream's own keys"))
	byName["minProperties"] = 1
	return described(schema{"anyOf": []schema{
		topicSchema(), {"type": "array", "items": topicSchema(), "minItems": 1, "uniqueItems": true}, byName,
	}}, "instead of topic: several Kafka topics, with what differs in each")
}

func listSchema() schema {
	properties := schema{
		"topic":    described(topicSchema(), "compacted Kafka topic with the entries, which weir list writes; several lists may share one"),
		"type":     described(schema{"enum": listTypes}, "type of the values; string by default"),
		"max_rows": described(wholeNumber(1, maxMaxRows), "the most entries; with more the list answers nothing"),
		"max_mib":  described(wholeNumber(1, maxMaxMiB), "the most memory of the entries, in MiB; with more the list answers nothing"),
	}
	return object(only(properties, listKeys), "topic")
}

func tableSchema() schema {
	properties := schema{
		"topic":     described(topicSchema(), "Kafka topic with the rows, the newest of each key last"),
		"file":      described(ref("text"), "file or object (s3://BUCKET/KEY) with the rows, instead of a topic: "+strings.Join(tableFiles, ", ")),
		"match":     described(ref("text"), "condition over the record that picks the table's rows; any other record deletes the row of its key"),
		"format":    ref("format"),
		"timestamp": described(ref("timestamp"), "path of the time since when the row holds; by default the time of its record"),
		"key":       described(ref("name"), "field by which rows are looked up; a string, unless fields has it"),
		"fields":    fieldsSchema(),
		"max_rows":  described(wholeNumber(1, maxMaxRows), "the most rows; with more the table answers nothing"),
		"max_mib":   described(wholeNumber(1, maxMaxMiB), "the most memory of the rows, in MiB; with more the table answers nothing"),
	}
	s := object(only(properties, tableKeys), tableNeeds...)
	s["oneOf"] = []schema{{"required": []string{"topic"}}, {"required": []string{"file"}}}
	return s
}

func timestampSchema() schema {
	properties := schema{"path": ref("path")}
	maps.Copy(properties, timeFormSchema())
	mapping := object(only(properties, timestampKeys), "path")
	mapping["not"] = schema{"required": []string{"unit", "layout"}}
	return described(schema{"anyOf": []schema{ref("path"), mapping}}, "path of the event's time")
}

// timeFormSchema returns the schemas of timeFormKeys.
func timeFormSchema() schema {
	return schema{
		"unit":   described(schema{"enum": record.TimeUnits}, "how a timestamp is written"),
		"layout": described(ref("text"), "instead of a unit, how 2006-01-02 15:04:05 would be written, such as 02.01.2006 15:04"),
		"tz":     described(ref("text"), "time zone of texts without an offset from UTC, such as Europe/Berlin"),
	}
}

// formatSchema returns the schema of a stream's format: a name, if that is enough, or a mapping.
func formatSchema() schema {
	var names []string
	variants := []schema{nil}
	for _, f := range record.Formats {
		properties, needs := schema{"type": schema{"const": f.Name}}, []string{"type"}
		for _, o := range f.Options {
			text := ref("text")
			if o.List {
				text = schema{"anyOf": []schema{ref("text"), {"type": "array", "items": ref("text"), "minItems": 1}}}
			}
			properties[o.Name] = described(text, o.Describes)
			if o.Required {
				needs = append(needs, o.Name)
			}
		}
		if len(needs) == 1 {
			names = append(names, f.Name)
		}
		variants = append(variants, described(object(properties, needs...), f.Describes))
	}
	variants[0] = schema{"enum": names}
	return described(schema{"anyOf": variants}, "format of the topic's records; json by default")
}

func enrichSchema() schema {
	properties := schema{
		"service": described(ref("name"), "the service whose features are written"),
		"topic":   described(topicSchema(), "Kafka topic to write to"),
		"format":  described(schema{"enum": enrichFormats}, "what to write: json by default, or avro by a schema in the Schema Registry"),
	}
	return object(only(properties, enrichKeys), enrichRequired...)
}

func fieldsSchema() schema {
	s := namedBy(namePattern, schema{"anyOf": []schema{ref("type"), ref("field")}})
	s["minProperties"] = 1
	return described(s, "the stream's typed fields")
}

func fieldSchema() schema {
	properties := schema{
		"type":        ref("type"),
		"path":        described(ref("path"), "path in the record; the field's name by default"),
		"scale":       described(wholeNumber(0, int(value.MaxScale)), "digits after the decimal point"),
		"exponent":    described(schema{"anyOf": []schema{{"type": "integer", "minimum": -maxExponent, "maximum": maxExponent}, {"type": "string", "pattern": "^[+-]?[0-9]+$"}}}, "of a decimal: the power of ten by which the number in the record is multiplied, such as -2 for cents"),
		"round":       described(truthSchema(), "digits of a decimal beyond its scale are rounded"),
		"encoding":    described(schema{"enum": append([]string{encodingOfDecimal}, record.Points...)}, "of a decimal: its digits without the point, as an integer of bytes in base64; of a location: how it is written as one value"),
		"lat":         described(ref("path"), "path of a location's latitude, if it is not lat below its own path"),
		"lon":         described(ref("path"), "path of a location's longitude"),
		"lenient":     described(truthSchema(), "takes texts as the numbers and bools that they hold"),
		"null_values": described(schema{"type": "array", "minItems": 1, "items": schema{"type": []string{"string", "number", "boolean"}}}, "texts and numbers that mean null"),
		"expr":        described(ref("text"), "expression over the fields defined before this one"),
		"max_bytes":   described(maxBytesSchema(), "the longest string that is kept whole, in bytes; of longer ones the beginning and a hash are kept"),
		"required":    described(truthSchema(), "a record without this field is a dead letter"),
	}
	maps.Copy(properties, timeFormSchema())
	s := object(only(properties, fieldKeys), "type")
	s["not"] = schema{"anyOf": []schema{{"required": []string{"path", "expr"}}, {"required": []string{"unit", "layout"}}}}
	return s
}

func truthSchema() schema { return schema{"enum": []any{true, false, "true", "false"}} }

func maxBytesSchema() schema { return wholeNumber(value.LeastMaxText, maxMaxBytes) }

func windowSchema() schema {
	oneLine := schema{"type": "string", "pattern": `^\s*(\{[^{}]+\}|(([0-9]\S*|lifetime)\s+)?(` + strings.Join(windowKeys, "|") + `)\s[^{}]+)$`}
	properties := schema{
		"rolling":    schema{"anyOf": []schema{ref("duration"), oneWord("lifetime")}},
		"calendar":   described(oneWord(slices.Sorted(maps.Keys(window.CalendarUnits))...), "from the beginning of the local hour, day, week, month, quarter or year"),
		"tz":         described(ref("text"), "time zone of a calendar window, or of a rolling one of whole days, such as Asia/Shanghai; UTC by default"),
		"starts":     described(oneWord(window.Weekdays...), "first day of a calendar week; monday by default"),
		"tumbling":   described(ref("duration"), "the current one of consecutive windows of this length"),
		"fixed":      described(ref("duration"), "length of a window that begins with an event"),
		"session":    described(ref("duration"), "from the end of the last gap of this length or longer"),
		"max_length": described(ref("duration"), "how far back to look for the beginning of a fixed or session window"),
		"last":       described(wholeNumber(1, maxMax), "count only this many events, the latest"),
	}
	mapping := object(only(properties, windowKeys))
	mapping["minProperties"], mapping["dependentRequired"] = 1, schema{"starts": []string{"calendar"}}
	return schema{"anyOf": []schema{{"anyOf": []schema{ref("duration"), oneWord("lifetime"), oneLine}}, mapping}}
}

func longFormSchema() schema {
	var methods []string
	for _, k := range aggregate.All {
		if m := k.Spec().Method; m != "" {
			methods = append(methods, m)
		}
	}
	by := schema{"anyOf": []schema{ref("name"), {"type": "array", "items": ref("name"), "minItems": 1, "uniqueItems": true}}}
	properties := schema{
		"function": oneWord(functionNames()...),
		"stream":   ref("name"),
		"field":    described(ref("name"), "the field that the function takes"),
		"by":       described(by, "the fields that name the entity"),
		"window":   ref("window"),
		"method":   oneWord(methods...),
		"tile":     described(schema{"anyOf": []schema{ref("duration"), oneWord("exact")}}, "width of the window's tiles, or exact"),
		"bounds":   described(schema{"enum": slices.Sorted(maps.Keys(window.BoundsByName))}, "the edges of an exact window; "+window.DefaultBounds+" by default"),
		"exclude":  described(schema{"enum": window.Exclusions[1:]}, "leaves out the event being scored, or all events with the same time"),
		"delay":    described(ref("duration"), "how long before the moment of the question the window ends"),
		"where":    described(ref("text"), "condition over the event's fields, which may be compared with those of the event in hand, such as event.amount"),
		"per":      described(ref("name"), "the field by which the answer is divided: one value for each category"),
		"max":      described(wholeNumber(1, maxMax), "the most values, categories or events to keep, or members of the list to read"),
		"through":  described(schema{"anyOf": []schema{ref("name"), ref("oneLine")}}, "a feature or a call such as SET(…) that answers with a list: the function is computed over the events of up to max of its members together"),
		"keep":     described(ref("duration"), "how far back a question may ask; "+window.FormatDuration(defaultKeep)+" by default"),
	}
	for _, k := range aggregate.All {
		for _, p := range k.Spec().Parameters {
			properties[p.Name] = described(parameterSchema(p), "parameter of "+strings.Join(takers(p.Name), ", "))
		}
	}
	s := object(only(properties, longFormKeys()), longFormNeeds...)
	s["anyOf"] = []schema{{"required": []string{"by"}}, {"required": []string{"through"}}}
	return s
}

// bodySchema returns the schema of a macro's body: a feature in which parameters may replace any text.
func bodySchema(feature schema) schema {
	properties := schema{}
	for key, property := range feature["properties"].(schema) {
		s := schema{"type": []string{"string", "number", "boolean", "array", "object"}, "minLength": 1}
		if text, ok := property.(schema)["description"].(string); ok {
			described(s, text)
		}
		properties[key] = s
	}
	return object(properties, feature["required"].([]string)...)
}

// parameterSchema returns the schema of a function's parameter.
func parameterSchema(p aggregate.Parameter) schema {
	switch p.Type {
	case aggregate.Span:
		return ref("duration")
	case aggregate.Whole:
		return wholeNumber(p.Min, p.Max)
	case aggregate.Edges:
		list := schema{"type": "array", "items": ref("text"), "minItems": p.Min, "maxItems": p.Max}
		return schema{"anyOf": []schema{ref("text"), list}}
	case aggregate.Choice:
		return schema{"enum": p.Choices}
	default:
		return ref("text")
	}
}

// takers returns the functions that take a parameter.
func takers(parameter string) []string {
	var names []string
	for _, k := range aggregate.All {
		spec := k.Spec()
		if slices.ContainsFunc(spec.Parameters, func(p aggregate.Parameter) bool { return p.Name == parameter }) {
			names = append(names, spec.Name)
		}
	}
	return slices.Compact(names)
}

func derivedSchema() schema {
	properties := schema{
		"expr":    described(ref("text"), "expression over other features, fields of tables such as merchant.category, and fields of the event being scored such as event.amount"),
		"stream":  described(ref("name"), "the stream of the event being scored, if the expression reads it"),
		"by":      described(ref("name"), "the name in questions of the key of the table that the expression reads; by default as in the table"),
		"default": described(schema{"type": []string{"string", "number", "boolean"}}, "the value in place of a null result, such as that of a division by zero"),
	}
	return object(only(properties, derivedKeys), "expr")
}

// only returns the properties for the loader's keys. Those without a schema are texts.
func only(properties schema, keys []string) schema {
	known := schema{}
	for _, key := range keys {
		known[key] = ref("text")
		if s, ok := properties[key]; ok {
			known[key] = s
		}
	}
	return known
}
