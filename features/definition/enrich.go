package definition

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// The keys of a stream's enrich, those that are required, and the formats.
var (
	enrichKeys     = []string{"service", "topic", "format"}
	enrichRequired = enrichKeys[:2]
	enrichFormats  = []string{"json", "avro"}
)

// enrichment is the `enrich` of a stream. It is compiled after the services.
type enrichment struct {
	stream *record.Stream
	node   node
}

// enrichments compiles where enriched events are written.
type enrichments struct {
	*streams
	services map[string]named
}

// enrich compiles where a stream's enriched events are written.
func (l *enrichments) enrich(e enrichment) {
	words := map[string]word{}
	keys := l.keyed(e.node, "enrich", enrichKeys...)
	for _, key := range enrichKeys {
		n, ok := keys[key]
		if !ok && e.node.Kind == yaml.MappingNode && slices.Contains(enrichRequired, key) {
			l.report(e.node.location(), "enrich needs %s", key)
		}
		if ok {
			words[key], _ = l.scalar(n, key)
		}
	}
	compiled := &features.Enrichment{Stream: e.stream}
	if w := words["format"]; w.given() {
		if !slices.Contains(enrichFormats, w.text) {
			l.report(w.location, "%s", spelling.Unknown("format", w.text, enrichFormats))
		}
		compiled.Avro = w.text == "avro"
	}
	l.registry.Enrichments = append(l.registry.Enrichments, compiled)
	if w := words["topic"]; w.given() {
		l.topic(w)
		compiled.Topic = w.text
		l.oneSchema(compiled, w)
		if round := l.readFrom(w.text, e.stream.Topic, nil); round != nil {
			l.report(w.location, "enrich writes to topic %q, which stream %q reads: its events would circulate forever; name another topic",
				w.text, round.Name)
		}
	}
	w := words["service"]
	if !w.given() {
		return
	}
	service, ok := l.registry.Service(w.text)
	if !ok {
		l.report(w.location, "%s", spelling.Unknown("service", w.text, slices.Collect(maps.Keys(l.services))))
		return
	}
	compiled.Service = service
	for _, f := range service.Features {
		if f != nil { // there is a finding about it
			l.enrichable(e.stream, f, w)
		}
	}
}

// oneSchema reports another stream that writes to the same topic, if either writes in Avro.
func (l *enrichments) oneSchema(e *features.Enrichment, w word) {
	for _, other := range l.registry.Enrichments {
		if other != e && other.Topic == e.Topic && (other.Avro || e.Avro) {
			l.report(w.location, "stream %q writes to topic %q too, and a topic in Avro has one schema; name another topic",
				other.Stream.Name, w.text)
		}
	}
}

// readFrom finds a stream through which the events of a topic return to the stream's own topic, directly or through
// other enriched streams.
func (l *enrichments) readFrom(topic, own string, seen []string) *record.Stream {
	if slices.Contains(seen, topic) {
		return nil
	}
	for _, s := range l.registry.Streams {
		if s.In(topic) == nil {
			continue
		}
		if topic == own {
			return s
		}
		if e := l.registry.Enrichment(s); e != nil && l.readFrom(e.Topic, own, append(seen, topic)) != nil {
			return s
		}
	}
	return nil
}

// enrichable reports why a feature cannot be answered at the events of a stream.
func (l *enrichments) enrichable(s *record.Stream, f *features.Feature, w word) {
	for i, by := range f.By {
		at := s.FieldIndex(by)
		switch {
		case at < 0:
			l.report(w.location, "feature %q of service %q is about field %q, which stream %q does not have; give it the field, or enrich with another service",
				f.Name, w.text, by, s.Name)
		case s.Fields[at].Type != f.ByTypes[i] && s.Fields[at].Type != value.Null:
			l.report(w.location, "feature %q of service %q is about field %q of type %s, and that of stream %q is of type %s: an entity must have one type in all streams",
				f.Name, w.text, by, f.ByTypes[i], s.Name, s.Fields[at].Type)
		}
	}
	if f.InHand != nil && f.InHand != s {
		l.report(w.location, "feature %q of service %q reads the event of stream %q, and here it is one of stream %q that is enriched; enrich with another service",
			f.Name, w.text, f.InHand.Name, s.Name)
	}
	if f.Membership() == aggregate.MembersRequired {
		at := s.FieldIndex(f.Field)
		if at < 0 || s.Fields[at].Type != f.Call.Type {
			l.report(w.location, "feature %q of service %q asks whether the event's own %s was met before, and stream %q has no field %s of type %s; give it the field, or enrich with another service",
				f.Name, w.text, f.Field, s.Name, f.Field, f.Call.Type)
		}
	}
}
