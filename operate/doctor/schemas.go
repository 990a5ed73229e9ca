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
	"github.com/weir-stream/weir/pipeline/schemas"
)

// SchemaRegistry is the Schema Registry that streams need.
type SchemaRegistry struct {
	Client   *sr.Client // nil if none is configured
	URL      string
	Registry *features.Registry
	Files    []string // of the definitions
}

// Schemas asks a Schema Registry for the latest schemas of the topics whose records name some, and
// looks up in them what the definitions read. If no records name schemas there are no findings.
func Schemas(ctx context.Context, r SchemaRegistry) (f Findings) {
	const subject = "schema registry"
	topics := topicsWithSchemas(r.Registry)
	switch {
	case len(topics) == 0:
		return nil
	case r.Client == nil:
		f.add(Fail, subject, fmt.Sprintf("registry.url is not set, and records of %s name schemas of a registry", strings.Join(topics, ", ")),
			"set registry.url")
		return f
	}
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
			f.add(Fail, subject, fmt.Sprintf("%s: %v", r.URL, reworded.Connection(err)), "check that it answers this machine, and check registry.username, token and tls")
			return f
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

// topicsWithSchemas are the topics whose records name schemas.
func topicsWithSchemas(registry *features.Registry) (topics []string) {
	for _, s := range registry.Streams {
		named, ok := s.Format.(record.RegisteredFormat)
		if ok && named.Registered() && !slices.Contains(topics, s.Topic) {
			topics = append(topics, s.Topic)
		}
	}
	return topics
}
