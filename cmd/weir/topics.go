package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/config"
)

// kafkaClient makes the client for requests about topics.
func kafkaClient(cfg *config.Config) (*kafka.Client, error) {
	transport, err := cfg.KafkaTransport()
	if err != nil {
		return nil, err
	}
	return &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport, Timeout: 10 * time.Second}, nil
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

// ensureTopics creates the topics that are missing, if the settings allow it.
func ensureTopics(ctx context.Context, client *kafka.Client, cfg config.Kafka, names []string) error {
	_, err := findTopics(ctx, client, names)
	missing, ok := errors.AsType[missingTopicsError](err)
	if !ok || !cfg.CreateTopics {
		return err
	}
	request := &kafka.CreateTopicsRequest{}
	for _, name := range missing {
		request.Topics = append(request.Topics, kafka.TopicConfig{
			Topic: name, NumPartitions: cfg.TopicPartitions, ReplicationFactor: cfg.TopicReplication,
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
