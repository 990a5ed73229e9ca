package pipeline

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// HeaderPrefix begins the names of the headers that Weir writes.
const HeaderPrefix = "weir-"

// The headers of a dead letter, after those of its record.
const (
	HeaderReason    = "weir-reason"
	HeaderMessage   = "weir-message"
	HeaderStream    = "weir-stream"
	HeaderTopic     = "weir-topic"
	HeaderPartition = "weir-partition"
	HeaderOffset    = "weir-offset"
	HeaderTimestamp = "weir-timestamp" // of the record, in ms
	// headerLastOffset is the last offset of a batch that cannot be decoded; HeaderOffset is its
	// first.
	headerLastOffset = "weir-last-offset"
)

// deadLetter is a record on its way to the dead-letter topic.
type deadLetter struct {
	rangeIndex int
	offset     int64
	timestamp  int64 // of the record, in ms
	reason     record.Reason
	stream     string
	path       string
	message    kafka.Message
}

// newDeadLetter copies a record with the reason why it is set aside.
func newDeadLetter(rangeIndex int, p state.Partition, rec *fetch.Record, poison *record.Poison) deadLetter {
	m := kafka.Message{Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value), Headers: rec.Headers.Copy()}
	for _, h := range [...][2]string{
		{HeaderReason, string(poison.Reason)},
		{HeaderMessage, poison.Error()},
		{HeaderStream, poison.Stream},
		{HeaderTopic, p.Topic},
		{HeaderPartition, strconv.Itoa(int(p.ID))},
		{HeaderOffset, strconv.FormatInt(rec.Offset, 10)},
		{HeaderTimestamp, strconv.FormatInt(rec.Timestamp, 10)},
	} {
		m.Headers = append(m.Headers, kafka.Header{Key: h[0], Value: []byte(h[1])})
	}
	return deadLetter{
		rangeIndex: rangeIndex, offset: rec.Offset, timestamp: rec.Timestamp,
		reason: poison.Reason, stream: poison.Stream, path: poison.Path, message: m,
	}
}

// newDeadLetterWriter returns a writer whose WriteMessages returns after the messages are written.
func newDeadLetterWriter(cfg *Config) *kafka.Writer {
	return &kafka.Writer{
		Addr:         kafka.TCP(cfg.Brokers...),
		Topic:        cfg.DeadLetterTopic,
		Balancer:     &kafka.Hash{},
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond,
		// The broker decides what is too large, not this writer.
		BatchBytes:  1 << 30,
		MaxAttempts: 3,
		Transport:   cfg.Transport,
	}
}

// messageWriter writes dead letters.
type messageWriter interface {
	WriteMessages(ctx context.Context, messages ...kafka.Message) error
}
