// Package connect opens the connections to Kafka and the store that the settings describe.
package connect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/reworded/brokers"
	"github.com/weir-stream/weir/pipeline/fetch"
)

// KafkaClient makes the client for requests about topics.
func KafkaClient(cfg *config.Config) (*kafka.Client, error) {
	transport, err := cfg.KafkaTransport()
	if err != nil {
		return nil, err
	}
	return &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport, Timeout: 10 * time.Second}, nil
}

// TopicNames returns the topics that a processor needs, dead letters last. It fails if dead letters would be among events.
func TopicNames(r *features.Registry, dead string) ([]string, error) {
	for _, e := range r.Enrichments {
		if e.Topic == dead {
			return nil, fmt.Errorf("kafka.dead_letter_topic is %s, to which stream %q writes its enriched events: name another one", dead, e.Stream.Name)
		}
	}
	for _, s := range r.Streams {
		if s.In(dead) != nil { // its dead letters would be read, and become dead letters again, without end
			return nil, fmt.Errorf("kafka.dead_letter_topic is %s, which stream %q reads: name another one", dead, s.Name)
		}
	}
	// Another stream may read a topic of enriched events.
	names := append(r.Topics(), r.EnrichedTopics()...)
	slices.Sort(names)
	return append(slices.Compact(names), dead), nil
}

// PartitionsOf returns the number of a topic's partitions, 0 if it does not exist.
func PartitionsOf(found *kafka.MetadataResponse, topic string) int {
	for _, t := range found.Topics {
		if t.Name == topic {
			return len(t.Partitions)
		}
	}
	return 0
}

// MissingTopicsError names topics that the brokers do not have.
type MissingTopicsError []string

func (e MissingTopicsError) Error() string {
	return fmt.Sprintf("no topic %s: create it, or set kafka.create_topics; with ACLs, allow Describe on it", strings.Join(e, ", "))
}

// FindTopics looks the topics up. The error is a MissingTopicsError if the brokers lack some.
func FindTopics(ctx context.Context, client *kafka.Client, names []string) (*kafka.MetadataResponse, error) {
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, brokers.Reword(err)
	}
	var missing MissingTopicsError
	for _, topic := range found.Topics {
		switch {
		case errors.Is(topic.Error, kafka.UnknownTopicOrPartition):
			missing = append(missing, topic.Name)
		case topic.Error != nil:
			return nil, fmt.Errorf("topic %s: %w", topic.Name, brokers.Reword(topic.Error))
		}
	}
	if missing != nil {
		return found, missing
	}
	return found, nil
}

// TopicSettings are the settings of topics.
type TopicSettings struct {
	Create                  bool   // those that are missing
	DeadLetters             string // the topic of dead letters
	Partitions, Replication int    // of topics that are created; -1 for the brokers' default
}

// EnsureTopics creates missing topics, if the settings allow it; topics of enriched events get as
// many partitions as their source, and topics of tables are compacted. Without one of the latter it does not fail: only what
// looks up the rows waits for it.
func EnsureTopics(ctx context.Context, client *kafka.Client, settings TopicSettings, r *features.Registry) error {
	names, err := TopicNames(r, settings.DeadLetters)
	if err != nil {
		return err
	}
	var ofTables []string
	if settings.Create {
		ofTables = slices.DeleteFunc(features.TableTopics(r.Tables), func(name string) bool { return slices.Contains(names, name) })
	}
	found, err := FindTopics(ctx, client, append(names, ofTables...))
	missing, ok := errors.AsType[MissingTopicsError](err)
	if !ok || !settings.Create {
		return err
	}
	request := &kafka.CreateTopicsRequest{}
	for _, name := range missing {
		partitions := 0
		for _, e := range r.Enrichments {
			if e.Topic == name {
				partitions = max(partitions, PartitionsOf(found, e.Stream.Topic))
			}
		}
		if partitions == 0 {
			partitions = settings.Partitions
		}
		topic := kafka.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: settings.Replication}
		if slices.Contains(ofTables, name) {
			topic.ConfigEntries = []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}}
		}
		request.Topics = append(request.Topics, topic)
	}
	made, err := client.CreateTopics(ctx, request)
	if err != nil {
		return fmt.Errorf("create topics: %w", brokers.Reword(err))
	}
	for _, name := range missing {
		err := made.Errors[name]
		switch {
		case err == nil, errors.Is(err, kafka.TopicAlreadyExists): // another process may have created it first
		case errors.Is(err, kafka.TopicAuthorizationFailed):
			return fmt.Errorf("create topic %s: the user may not: allow Create on the topic or the cluster, or create it yourself", name)
		default:
			return fmt.Errorf("create topic %s: %w", name, brokers.Reword(err))
		}
	}
	return nil
}

// Isolation returns the isolation with which events are read.
func Isolation(cfg *config.Config) fetch.Isolation {
	if cfg.Kafka.Isolation == "read_uncommitted" {
		return fetch.ReadUncommitted
	}
	return fetch.ReadCommitted
}
