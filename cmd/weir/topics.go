package main

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
)

// kafkaClient makes the client for requests about topics.
func kafkaClient(cfg *config.Config) (*kafka.Client, error) {
	transport, err := cfg.KafkaTransport()
	if err != nil {
		return nil, err
	}
	return &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport, Timeout: 10 * time.Second}, nil
}

// topicNames are the topics that a processor needs, dead letters last. The error
// says that one would be taken for another.
func topicNames(r *features.Registry, dead string) ([]string, error) {
	for _, e := range r.Enrichments {
		if e.Topic == dead {
			return nil, fmt.Errorf("kafka.dead_letter_topic is %s, to which stream %q writes its enriched events: name another one", dead, e.Stream.Name)
		}
	}
	// A topic of enriched events may be read by another stream.
	names := append(r.Topics(), r.EnrichedTopics()...)
	slices.Sort(names)
	return append(slices.Compact(names), dead), nil
}

// partitionsOf is the number of a topic's partitions, 0 where it is not there.
func partitionsOf(found *kafka.MetadataResponse, topic string) int {
	for _, t := range found.Topics {
		if t.Name == topic {
			return len(t.Partitions)
		}
	}
	return 0
}

// missingTopicsError names topics that the brokers do not have.
type missingTopicsError []string

func (e missingTopicsError) Error() string {
	return fmt.Sprintf("no topic %s: create it, or set kafka.create_topics", strings.Join(e, ", "))
}

// findTopics looks the topics up. It is a missingTopicsError if there are some
// that the brokers do not have.
func findTopics(ctx context.Context, client *kafka.Client, names []string) (*kafka.MetadataResponse, error) {
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, err
	}
	var missing missingTopicsError
	for _, topic := range found.Topics {
		switch {
		case errors.Is(topic.Error, kafka.UnknownTopicOrPartition):
			missing = append(missing, topic.Name)
		case topic.Error != nil:
			return nil, fmt.Errorf("topic %s: %w", topic.Name, topic.Error)
		}
	}
	if missing != nil {
		return found, missing
	}
	return found, nil
}

// topicSettings are those about topics.
type topicSettings struct {
	create                  bool   // those that are missing
	deadLetters             string // the topic of dead letters
	partitions, replication int    // of topics that are created; -1 for the brokers' default
}

// ensureTopics creates the topics that are missing, if the settings allow it;
// those of enriched events with as many partitions as what they are made of has.
func ensureTopics(ctx context.Context, client *kafka.Client, settings topicSettings, r *features.Registry) error {
	names, err := topicNames(r, settings.deadLetters)
	if err != nil {
		return err
	}
	found, err := findTopics(ctx, client, names)
	missing, ok := errors.AsType[missingTopicsError](err)
	if !ok || !settings.create {
		return err
	}
	request := &kafka.CreateTopicsRequest{}
	for _, name := range missing {
		partitions := 0
		for _, e := range r.Enrichments {
			if e.Topic == name {
				partitions = max(partitions, partitionsOf(found, e.Stream.Topic))
			}
		}
		if partitions == 0 {
			partitions = settings.partitions
		}
		request.Topics = append(request.Topics, kafka.TopicConfig{
			Topic: name, NumPartitions: partitions, ReplicationFactor: settings.replication,
		})
	}
	made, err := client.CreateTopics(ctx, request)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	for _, name := range missing {
		// Another process may have been quicker.
		if err := made.Errors[name]; err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}
	return nil
}
