package features

import (
	"slices"

	"github.com/weir-stream/weir/features/record"
)

// Enrichment describes the topic to which the events of a stream are written together with the features of a service,
// each as of its event.
type Enrichment struct {
	Stream  *record.Stream
	Service *Service
	Topic   string
	// Avro is true if the events are written in Avro with a schema in a registry, and false if in JSON.
	Avro bool
}

// Format returns the name of the format in which they are written.
func (e *Enrichment) Format() string {
	if e.Avro {
		return "avro"
	}
	return "json"
}

// Enrichment returns the enrichment of a stream, or nil if it has none.
func (r *Registry) Enrichment(s *record.Stream) *Enrichment {
	for _, e := range r.Enrichments {
		if e.Stream == s {
			return e
		}
	}
	return nil
}

// EnrichedTopics lists the topics that enriched events are written to, sorted.
func (r *Registry) EnrichedTopics() []string {
	var topics []string
	for _, e := range r.Enrichments {
		topics = append(topics, e.Topic)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}
