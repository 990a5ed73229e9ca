// Package topics reads the settings of topics from the brokers.
package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// Settings reads the settings of topics, by topic and name.
func Settings(ctx context.Context, client *kafka.Client, names []string) (map[string]map[string]string, error) {
	request := &kafka.DescribeConfigsRequest{}
	for _, name := range names {
		request.Resources = append(request.Resources,
			kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: name})
	}
	settings := map[string]map[string]string{}
	if len(names) == 0 {
		return settings, nil
	}
	found, err := client.DescribeConfigs(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("read the settings of topics: %w", err)
	}
	for _, topic := range found.Resources {
		if errors.Is(topic.Error, kafka.TopicAuthorizationFailed) {
			return nil, fmt.Errorf("read the settings of topic %s: the user may not: allow DescribeConfigs on it", topic.ResourceName)
		}
		if topic.Error != nil {
			return nil, fmt.Errorf("read the settings of topic %s: %w", topic.ResourceName, topic.Error)
		}
		settings[topic.ResourceName] = map[string]string{}
		for _, e := range topic.ConfigEntries {
			settings[topic.ResourceName][e.ConfigName] = e.ConfigValue
		}
	}
	return settings, nil
}
