package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/pipeline/schemas"
)

// SchemaRegistry is the Schema Registry that definitions need.
type SchemaRegistry struct {
	Client   *sr.Client // nil if none is configured
	URL      string
	Registry *features.Registry
	Files    []string // of the definitions
}

// Schemas compares the definitions with the latest schemas of the topics whose records name schemas, and checks whether
// the registry accepts the schemas of enriched events. If no records name schemas there are no findings.
func Schemas(ctx context.Context, r SchemaRegistry) (f Findings) {
	topics, enriched := topicsWithSchemas(r.Registry), enrichedWithSchemas(r.Registry)
	if r.Client == nil {
		for _, topic := range enriched {
			if !slices.Contains(topics, topic.Topic) {
				topics = append(topics, topic.Topic)
			}
		}
		if len(topics) > 0 {
			f.add(Fail, schemaRegistry, fmt.Sprintf("registry.url is not set, and records of %s name schemas of a registry", strings.Join(topics, ", ")),
				"set registry.url")
		}
		return f
	}
	if len(topics) > 0 {
		f = r.read(ctx, topics)
	}
	for _, e := range enriched {
		f = append(f, r.written(ctx, e)...)
	}
	return f
}

// schemaRegistry is the subject of findings about the registry itself.
const schemaRegistry = "schema registry"

// unanswered returns the finding that the registry does not answer.
func (r SchemaRegistry) unanswered(err error) (f Findings) {
	f.add(Fail, schemaRegistry, fmt.Sprintf("%s: %v", r.URL, reworded.Connection(err)), "check that it answers this machine, and check registry.username, token and tls")
	return f
}

// written checks whether the registry accepts the schema of enriched events.
func (r SchemaRegistry) written(ctx context.Context, e *features.Enrichment) (f Findings) {
	subject, schema := enrich.Schema(e)
	of := "schema of " + e.Topic
	fits, err := r.Client.CheckCompatibility(ctx, subject, -1, sr.Schema{Schema: schema})
	switch {
	case schemas.Lacks(err):
		f.ok(of, "will be the first of %s", subject)
	case err != nil:
		return r.unanswered(err)
	case !fits.Is:
		f.add(Fail, of, strings.Join(append([]string{"the registry will refuse it, as it is incompatible with the latest of " + subject}, fits.Messages...), ": "),
			"give a feature or field that changes its type another name, or enrich another topic; until then events of "+e.Stream.Topic+" wait")
	default:
		f.ok(of, "fits the latest of %s", subject)
	}
	return f
}

// enrichedWithSchemas returns the enrichments in Avro.
func enrichedWithSchemas(registry *features.Registry) (list []*features.Enrichment) {
	for _, e := range registry.Enrichments {
		if e.Avro {
			list = append(list, e)
		}
	}
	return list
}

// read compares what the definitions read of topics with their latest schemas.
func (r SchemaRegistry) read(ctx context.Context, topics []string) (f Findings) {
	latest, lacking := map[string]record.Registered{}, false
	for _, topic := range topics {
		of := "schema of " + topic
		found, err := schemas.Latest(ctx, r.Client, topic+"-value")
		switch {
		case schemas.Lacks(err):
			lacking = true
			f.add(Warn, of, fmt.Sprintf("the registry has no subject %s-value: nothing was written yet, or under another name", topic),
				"nothing, if producers name their subjects in another way")
		case err != nil:
			return append(f, r.unanswered(err)...)
		default:
			latest[topic] = found
			f.ok(of, "%s", strings.ToLower(found.Type))
		}
	}
	if lacking {
		return f
	}
	_, err := definition.LoadLatest(func(topic string) (record.Registered, error) { return latest[topic], nil }, r.Files...)
	if err != nil {
		f.add(Fail, "schemas", err.Error(), "correct the paths and types, or the schema; weir validate --registry checks only definitions and schemas")
	}
	return f
}

// topicsWithSchemas returns the topics whose records name schemas.
func topicsWithSchemas(registry *features.Registry) (topics []string) {
	for _, s := range registry.Streams {
		for _, in := range s.Sources() {
			named, ok := in.Format.(record.RegisteredFormat)
			if ok && named.Registered() && !slices.Contains(topics, in.Topic) {
				topics = append(topics, in.Topic)
			}
		}
	}
	return topics
}
