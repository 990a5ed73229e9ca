package featuretest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// object is a JSON object under construction, with ordered members.
type object struct {
	names  []string
	values map[string]any // *object or JSON
}

func newObject() *object { return &object{values: map[string]any{}} }

// set sets JSON at a path. It returns false if the path leads through another value.
func (o *object) set(path []string, text string) bool {
	for ; len(path) > 1; path = path[1:] {
		if _, there := o.values[path[0]]; !there {
			o.names = append(o.names, path[0])
			o.values[path[0]] = newObject()
		}
		next, ok := o.values[path[0]].(*object)
		if !ok {
			return false
		}
		o = next
	}
	if _, there := o.values[path[0]]; !there {
		o.names = append(o.names, path[0])
	}
	o.values[path[0]] = text
	return true
}

func (o *object) appendJSON(dst []byte) []byte {
	for i, name := range o.names {
		dst = append(dst, "{,"[min(i, 1)])
		dst = append(query.AppendString(dst, name), ':')
		if inner, ok := o.values[name].(*object); ok {
			dst = inner.appendJSON(dst)
		} else {
			dst = append(dst, o.values[name].(string)...)
		}
	}
	if len(o.names) == 0 {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// toJSON converts YAML to JSON: numbers keep their spelling.
func toJSON(n *yaml.Node) string {
	n = resolved(n)
	switch n.Kind {
	case yaml.SequenceNode:
		items := make([]string, len(n.Content))
		for i, item := range n.Content {
			items[i] = toJSON(item)
		}
		return "[" + strings.Join(items, ",") + "]"
	case yaml.MappingNode:
		o := newObject()
		each(n, func(key, value *yaml.Node) { o.set([]string{key.Value}, toJSON(value)) })
		return string(o.appendJSON(nil))
	}
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		return "null"
	case tag == "!!bool":
		return strings.ToLower(n.Value)
	case (tag == "!!int" || tag == "!!float") && value.ScanNumber([]byte(n.Value), 0) == len(n.Value):
		return n.Value
	default:
		return string(query.AppendString(nil, n.Value))
	}
}

// recordOf returns the record of a stream's event in its topic, including what the file defines for all events of the
// stream, nil for a tombstone. It fails for members that the stream does not have.
func (f *file) recordOf(r *features.Registry, e *event) ([]byte, error) {
	if e.stream == "" && resolved(e.fields).ShortTag() == "!!null" {
		return nil, nil // a tombstone
	}
	if e.stream == "" {
		return []byte(toJSON(e.fields)), nil
	}
	s, err := r.StreamNamed(e.stream)
	if err != nil {
		return nil, err
	}
	o := newObject()
	if !s.Within(s.Timestamp.Path) { // elements have their own
		o.set(s.Timestamp.Path, s.Timestamp.Form.JSON(e.at))
	}
	put := func(key, v *yaml.Node) {
		if key.Value == "at" || key.Value == "came" || err != nil {
			return
		}
		if i := s.FieldIndex(key.Value); i >= 0 && s.Fields[i].Lat != nil {
			err = setPlace(o, &s.Fields[i], v)
			return
		}
		err = f.put(o, "stream "+s.Name, s, key.Value, v)
	}
	if defaults := f.defaults[e.stream]; defaults != nil {
		each(defaults, func(key, v *yaml.Node) {
			if e.entity != nil {
				v = cmp.Or(member(e.entity, key.Value), v)
			}
			put(key, v)
		})
	}
	each(e.fields, put)
	return o.appendJSON(nil), err
}

// put sets a member of a record, which is of what, by its name.
func (f *file) put(o *object, what string, s *record.Stream, name string, v *yaml.Node) error {
	path, err := pathOf(what, s, name)
	if err == nil && !o.set(path, f.valueText(s, name, v)) {
		err = conflict(name)
	}
	return err
}

func conflict(name string) error {
	return fmt.Errorf("%s: its path conflicts with that of another value", name)
}

// setPlace sets a location, given as {lat: …, lon: …}, whose degrees have paths of their own.
func setPlace(o *object, f *record.Field, v *yaml.Node) error {
	degrees := map[string]string{}
	each(resolved(v), func(key, value *yaml.Node) { degrees[key.Value] = toJSON(value) })
	lat, north := degrees["lat"]
	lon, east := degrees["lon"]
	switch null := resolved(v).ShortTag() == "!!null"; {
	case null:
		lat, lon = "null", "null"
	case !north || !east || len(degrees) > 2:
		return fmt.Errorf("%s: expected {lat: 52.5, lon: 13.4}, with values as the record has them", f.Name)
	}
	if !o.set(f.Lat, lat) || !o.set(f.Lon, lon) {
		return conflict(f.Name)
	}
	return nil
}

// valueText returns a value as JSON: a timestamp in the form of its field.
func (f *file) valueText(s *record.Stream, name string, v *yaml.Node) string {
	if i := s.FieldIndex(name); i >= 0 && s.Fields[i].Type == value.Timestamp && v.Kind == yaml.ScalarNode {
		if ms, err := f.parseMoment(v.Value); err == nil {
			return s.Fields[i].Form.JSON(ms)
		}
	}
	return toJSON(v)
}

// pathOf returns the path of an event's member in its record, which is of what. Fields are given by name, the id and
// what the match reads by their paths.
func pathOf(what string, s *record.Stream, name string) ([]string, error) {
	var known []string
	paths := append(slices.Clone(s.Match.Paths()), s.ID)
	if s.Each != nil {
		paths = append(slices.DeleteFunc(paths, s.Within), s.Each)
	}
	for _, field := range s.Fields {
		if s.Within(field.Path) {
			if field.Name == name {
				return nil, fmt.Errorf("field %s is of each element of %s: give the array, as %[2]s", name, strings.Join(s.Each, "."))
			}
			continue
		}
		if field.Expr != nil {
			if field.Name == name {
				return nil, fmt.Errorf("field %s is computed from others: give those", name)
			}
			continue
		}
		if field.Name == name {
			return field.Path, nil
		}
		known = append(known, field.Name)
	}
	for _, path := range paths {
		dotted := strings.Join(path, ".")
		if path != nil && dotted == name {
			return path, nil
		}
		if path != nil {
			known = append(known, dotted)
		}
	}
	return nil, errors.New(spelling.UnknownIn(" of "+what, "field", name, known))
}

// decoded is JSON as Go values, with numbers unchanged.
func decoded(text []byte) (v any) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(text)
	}
	return v
}
