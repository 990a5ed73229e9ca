package definition

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// topicKeys are the keys of a topic of a stream that reads several: what differs there.
var topicKeys = []string{"match", "format", "timestamp", "id", "fields"}

// source is a stream as one of its topics has it: the definition of a stream of that topic alone.
type source struct {
	named
	topic string // empty for a stream of one topic
}

// streamOf compiles a stream with all of its topics.
func (l *streams) streamOf(d named) (s *record.Stream) {
	for _, from := range l.sources(d) {
		in := l.stream(from)
		l.checkFormat("stream "+strconv.Quote(in.Name), d, in)
		if s == nil {
			s = in
		} else {
			s.Others = append(s.Others, in)
		}
	}
	return s
}

// sources returns a stream as each of its topics has it. They are compiled one by one, so that all that is checked of a stream
// is checked in each topic; what they have in common is then reported once, see Findings.sorted.
func (l *streams) sources(d named) []source {
	what := "stream " + strconv.Quote(d.name.text)
	if !d.node.has("topics") {
		return []source{{d, ""}}
	}
	keys := map[string]node{}
	for _, e := range l.entries(d.node, what, "key") {
		keys[e.key.text] = e.value
	}
	topics := keys["topics"]
	if _, both := keys["topic"]; both {
		l.report(topics.location(), "%s has both topic and topics; omit one of them", what)
	}
	if n, ok := keys["enrich"]; ok {
		l.report(n.location(), "%s has topics, and enrich writes the events of one topic; write a stream with topic for it", what)
	}
	differing := l.topics(topics)
	if len(differing) == 0 {
		return []source{{d, ""}}
	}
	fields := keys["fields"]
	var sources []source
	for _, t := range differing {
		whole := slices.Clone(d.node.Content)
		set := func(key string, n node) { whole = setKey(whole, key, n.Node) }
		set("topics", node{})
		set("topic", textNode(t.key))
		if t.value.Node != nil {
			named := what + " in topic " + strconv.Quote(t.key.text)
			for key, n := range l.keyed(t.value, "topic "+strconv.Quote(t.key.text), topicKeys...) {
				switch key {
				case "fields":
					n = l.fieldsIn(named, fields, n)
				case "timestamp":
					n = l.reading(keys["timestamp"], n, "path", timestampKeys, "the timestamp of "+named)
				}
				if n.Node != nil {
					set(key, n)
				}
			}
		}
		merged := *d.node.Node
		merged.Content = whole
		sources = append(sources, source{named{d.name, node{&merged, d.node.file, d.node.from}, d.comment}, t.key.text})
	}
	return sources
}

// topics reads the topics of a stream: a list, or a mapping to what differs in them.
func (l *streams) topics(n node) (list []entry) {
	if len(n.Content) == 0 && (n.Kind != yaml.ScalarNode || n.Tag == "!!null") {
		l.report(n.location(), "topics must name at least one topic")
		return nil
	}
	if n.Kind == yaml.MappingNode {
		for _, e := range l.entries(n, "topics", "topic") {
			if e.value.Kind == yaml.ScalarNode && e.value.Tag == "!!null" {
				e.value.Node = nil
			}
			list = append(list, e)
		}
	} else {
		for _, w := range l.list(n, "topics") {
			if slices.ContainsFunc(list, func(e entry) bool { return e.key.text == w.text }) {
				l.report(w.location, "topic %q is listed twice", w.text)
				continue
			}
			list = append(list, entry{key: w, value: node{file: n.file}})
		}
	}
	return list
}

// fieldsIn returns the fields of a stream with what a topic says about how they are read there.
func (l *streams) fieldsIn(what string, all, differing node) node {
	if all.Node == nil {
		return node{} // that the stream needs fields is reported
	}
	merged := node{&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: all.Line, Column: all.Column}, all.file, all.from}
	merged.Content = slices.Clone(all.Content)
	var known []string
	for i := 0; i+1 < len(all.Content); i += 2 {
		known = append(known, all.Content[i].Value)
	}
	for _, e := range l.entries(differing, "fields", "field") {
		at := slices.Index(known, e.key.text)
		if at < 0 {
			l.report(e.key.location, "%s", spelling.UnknownIn(" of "+what+", which says how the stream's own fields are read there", "field", e.key.text, known))
			continue
		}
		if e.value.Kind == yaml.ScalarNode {
			if _, isType := value.ParseType(e.value.Value); isType {
				l.report(e.value.location(), "%q is a type, and a field in a topic is given by its path: types are those of the stream's fields. Write {path: %[1]s} if the path is meant", e.value.Value)
				continue
			}
		}
		field := all.child(all.Content[2*at+1])
		merged.Content[2*at+1] = l.reading(field, e.value, "type", readingKeys, "field "+strconv.Quote(e.key.text)+" in a topic").Node
	}
	return merged
}

// together are keys of which each says the same in another way: where a topic gives one of them, it gives all.
var together = [][]string{{"path", "lat", "lon"}, timeFormKeys}

// reading returns how a value is read, with what differs in a topic: a path, or a mapping with some keys. A scalar in place of
// the mapping that differs is its usual key.
func (l *streams) reading(whole, differing node, usual string, known []string, what string) node {
	merged := node{&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: differing.Line, Column: differing.Column}, differing.file, differing.from}
	switch {
	case whole.Node == nil:
	case whole.Kind == yaml.ScalarNode:
		merged.Content = setKey(nil, usual, whole.Node)
	default:
		merged.Content = slices.Clone(whole.Content)
	}
	given := map[string]node{}
	if differing.Kind == yaml.ScalarNode {
		given["path"] = differing
	} else {
		given = l.keyed(differing, what, known...)
	}
	for _, group := range together {
		if slices.ContainsFunc(group, func(key string) bool { return given[key].Node != nil }) {
			for _, key := range group {
				merged.Content = setKey(merged.Content, key, nil)
			}
		}
	}
	for _, key := range known { // in one order
		if n, ok := given[key]; ok {
			merged.Content = setKey(merged.Content, key, n.Node)
		}
	}
	return merged
}

// setKey returns the content of a mapping with another value of a key, or, if that is nil, without the key.
func setKey(content []*yaml.Node, key string, value *yaml.Node) (set []*yaml.Node) {
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value != key {
			set = append(set, content[i], content[i+1])
		}
	}
	if value == nil {
		return set
	}
	return append(set, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: value.Line, Column: value.Column}, value)
}

// textNode returns a word as a node.
func textNode(w word) node {
	return node{Node: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: w.text, Line: w.location.line, Column: w.location.column}}
}
