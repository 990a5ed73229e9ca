package pipeline

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/pipeline/fetch"
)

// The headers of a dead letter, behind those that the record came with.
const (
	headerReason    = "weir-reason"
	headerMessage   = "weir-message"
	headerStream    = "weir-stream"
	headerTopic     = "weir-topic"
	headerPartition = "weir-partition"
	headerOffset    = "weir-offset"
	headerTimestamp = "weir-timestamp" // of the record, in ms
)

// deadLetter is a record on its way to the dead-letter topic.
type deadLetter struct {
	source  int
	offset  int64
	reason  features.Reason
	stream  string
	message kafka.Message
}

// newDeadLetter copies a record with the reason for which it is set aside.
func newDeadLetter(source int, p kinds.Partition, rec *fetch.Record, poison *features.Poison) deadLetter {
	m := kafka.Message{Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value)}
	for key, value := range rec.Headers.All() {
		m.Headers = append(m.Headers, kafka.Header{Key: key, Value: bytes.Clone(value)})
	}
	for _, h := range [...][2]string{
		{headerReason, string(poison.Reason)},
		{headerMessage, poison.Error()},
		{headerStream, poison.Stream},
		{headerTopic, p.Topic},
		{headerPartition, strconv.Itoa(int(p.ID))},
		{headerOffset, strconv.FormatInt(rec.Offset, 10)},
		{headerTimestamp, strconv.FormatInt(rec.Timestamp, 10)},
	} {
		m.Headers = append(m.Headers, kafka.Header{Key: h[0], Value: []byte(h[1])})
	}
	return deadLetter{source: source, offset: rec.Offset, reason: poison.Reason, stream: poison.Stream, message: m}
}

// newDeadLetterWriter returns a writer that has written when WriteMessages returns.
func newDeadLetterWriter(cfg *Config) *kafka.Writer {
	return &kafka.Writer{
		Addr:         kafka.TCP(cfg.Brokers...),
		Topic:        cfg.DeadLetterTopic,
		Balancer:     &kafka.Hash{},
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond,
		// The broker says what is too large, not this writer.
		BatchBytes:  1 << 30,
		MaxAttempts: 3,
		Transport:   cfg.Transport,
	}
}

// messageWriter is what writes dead letters.
type messageWriter interface {
	WriteMessages(ctx context.Context, messages ...kafka.Message) error
}
