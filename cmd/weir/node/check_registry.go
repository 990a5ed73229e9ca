package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/schemas"
)

// checkRegistry asks the Schema Registry for the latest schemas of the topics whose records name
// some, and looks up in them what the definitions read.
func checkRegistry(ctx context.Context, list *checkList, cfg *config.Config, registry *features.Registry) {
	topics := topicsWithSchemas(registry)
	client, err := cfg.SchemaRegistry()
	switch {
	case err != nil:
		list.fail("registry", err)
		return
	case client == nil && len(topics) > 0:
		list.fail("registry", fmt.Errorf("registry.url is not set, and records of %s name schemas of a registry", strings.Join(topics, ", ")))
		return
	case client == nil:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Registry.Timeout)
	defer cancel()
	latest, lacking := map[string]record.Registered{}, false
	for _, topic := range topics {
		found, err := schemas.Latest(ctx, client, topic+"-value")
		if schemas.Lacks(err) {
			lacking = true
			list.warn("schema of "+topic, "the registry has no subject %s-value: nothing was written yet, or under another name", topic)
			continue
		}
		if err != nil {
			list.fail("registry", fmt.Errorf("%s: %w", cfg.Registry.URL, err))
			return
		}
		latest[topic] = found
		list.ok("schema of "+topic, "%s", strings.ToLower(found.Type))
	}
	if lacking || len(topics) == 0 {
		return
	}
	_, err = definition.LoadLatest(func(topic string) (record.Registered, error) { return latest[topic], nil }, cfg.Features...)
	if err != nil {
		list.fail("schemas", err)
	}
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
