package generate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// publishBatch is the number of events written together.
const publishBatch = 1000

// Write writes events somewhere; when it returns without an error, all are written.
type Write func(ctx context.Context, events []Event) error

// Publish writes generated events: limit of them, 0 for no limit; rate a second, 0 for as fast as
// they are accepted. It returns nil when the context ends.
func Publish(ctx context.Context, events *Generator, limit int64, rate float64, write Write) error {
	batch := make([]Event, 0, publishBatch)
	start := time.Now()
	for sent := int64(0); limit == 0 || sent < limit; sent += int64(len(batch)) {
		if ctx.Err() != nil { // which not every way to write looks at
			return nil
		}
		due := int64(publishBatch)
		if rate > 0 {
			due = min(due, int64(time.Since(start).Seconds()*rate)-sent)
		}
		if limit > 0 {
			due = min(due, limit-sent)
		}
		batch = batch[:0]
		if due <= 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(5 * time.Millisecond):
			}
			continue
		}
		for range due {
			batch = append(batch, events.Next())
		}
		if err := write(ctx, batch); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	return nil
}

// ToKafka writes to the topics that the events name. A record's timestamp is its event's, and all
// events of a key are in one partition.
func ToKafka(w *kafka.Writer) Write {
	var messages []kafka.Message
	return func(ctx context.Context, events []Event) error {
		messages = messages[:0]
		for _, e := range events {
			messages = append(messages, kafka.Message{Topic: e.Topic, Key: e.Key, Value: e.Value, Time: time.UnixMilli(e.Timestamp)})
		}
		if err := w.WriteMessages(ctx, messages...); err != nil {
			return fmt.Errorf("write to the topics %s: %w", topicsOf(events), err)
		}
		return nil
	}
}

// topicsOf lists the topics of events, sorted.
func topicsOf(events []Event) string {
	topics := map[string]bool{}
	for _, e := range events {
		topics[e.Topic] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(topics)), ", ")
}

// NewKafkaWriter returns a writer that waits until all replicas have the records.
func NewKafkaWriter(transport kafka.RoundTripper, brokers []string) *kafka.Writer {
	return &kafka.Writer{
		Addr:         kafka.TCP(brokers...),
		Transport:    transport,
		Balancer:     kafka.Murmur2Balancer{}, // as Java's clients do
		RequiredAcks: kafka.RequireAll,
		BatchSize:    publishBatch,
		BatchTimeout: time.Millisecond,
	}
}

// ToLines writes each event as a line with a JSON object.
func ToLines(out io.Writer) Write {
	var lines []byte
	return func(_ context.Context, events []Event) error {
		lines = lines[:0]
		for _, e := range events {
			lines = AppendNDJSON(lines, e)
		}
		if _, err := out.Write(lines); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		return nil
	}
}
