package textbook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
)

const (
	pipelineEvents = 500
	linger         = 5 * time.Millisecond
)

// Consumer is one member of a group of textbook consumers.
type Consumer struct {
	Brokers []string
	Group   string
	Topics  []string
	Redis   redis.UniversalClient
	// Applied is called with the messages of every pipeline that was written.
	Applied func([]kafka.Message)
}

// Run consumes until the context ends.
func (c *Consumer) Run(ctx context.Context) error {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: c.Brokers, GroupID: c.Group, GroupTopics: c.Topics,
		StartOffset: kafka.FirstOffset, MinBytes: 1, MaxBytes: 10e6,
	})
	defer reader.Close()
	for {
		messages, err := fetch(ctx, reader)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		pipe := c.Redis.Pipeline()
		for i := range messages {
			var e Event
			if err := json.Unmarshal(messages[i].Value, &e); err != nil {
				slog.Warn("passed over", "topic", messages[i].Topic, "offset", messages[i].Offset, "error", err)
				continue
			}
			apply(ctx, pipe, &e)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("write to Redis: %w", err)
		}
		c.Applied(messages)
		if err := reader.CommitMessages(ctx, messages...); err != nil && ctx.Err() == nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
}

// fetch waits for a message and takes those that follow shortly.
func fetch(ctx context.Context, reader *kafka.Reader) ([]kafka.Message, error) {
	first, err := reader.FetchMessage(ctx)
	if err != nil {
		return nil, err
	}
	messages := append(make([]kafka.Message, 0, pipelineEvents), first)
	soon, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	for len(messages) < pipelineEvents {
		m, err := reader.FetchMessage(soon)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}
