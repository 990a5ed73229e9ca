package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// The headers of a dead letter, after those of its record and before its seal.
const (
	HeaderReason    = "weir-reason"
	HeaderMessage   = "weir-message"
	HeaderStream    = "weir-stream"
	HeaderTopic     = "weir-topic"
	HeaderPartition = "weir-partition"
	HeaderOffset    = "weir-offset"
	HeaderTimestamp = "weir-timestamp" // of the record, in ms
	HeaderNamespace = "weir-namespace" // of the state in which the record does not count
	// headerLastOffset is the last offset of a batch that cannot be decoded; HeaderOffset is its
	// first.
	headerLastOffset = "weir-last-offset"
	// HeaderCut is there if the letter has only the beginnings of its record's key and value, and maybe not its headers,
	// because more does not fit into the topic: the lengths of the whole ones, in bytes.
	HeaderCut = "weir-cut"
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
	due        bool // no shard has applied a batch with it
}

// writtenLetters are the dead letters of ranges that were left out of a batch afterwards, such as those whose enriched
// events cannot be written. They are read again for as long as that lasts, and must not be written each time. It holds
// the hashes of the letters by offset: a log that was made again may have another one there.
type writtenLetters map[state.Partition]map[int64]uint64

var letterSeed = maphash.MakeSeed()

func (d *deadLetter) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(letterSeed)
	maphash.WriteComparable(&h, struct {
		at             int64
		reason, stream string
		key            int
	}{d.timestamp, string(d.reason), d.stream, len(d.message.Key)})
	_, _ = h.Write(d.message.Key) // it never fails
	_, _ = h.Write(d.message.Value)
	return h.Sum64()
}

func (w writtenLetters) has(p state.Partition, d *deadLetter) bool {
	hash, known := w[p][d.offset]
	return known && hash == d.hash()
}

func (w writtenLetters) add(p state.Partition, d *deadLetter) {
	if w[p] == nil {
		w[p] = map[int64]uint64{}
	}
	w[p][d.offset] = d.hash()
}

// forget forgets the letters of a batch that was applied. A range may end before some: it was made before their records
// were read again.
func (w writtenLetters) forget(b *workerBatch) {
	for i := range b.Ranges {
		if r := &b.Ranges[i]; !r.Behind {
			maps.DeleteFunc(w[r.Partition], func(offset int64, _ uint64) bool { return offset < r.To })
		}
	}
}

// newDeadLetter copies a record of the current partition with the reason why it is set aside, and more headers. The
// record's own headers do not have names of Weir's in it.
func (w *worker) newDeadLetter(rangeIndex int, rec *fetch.Record, poison *record.Poison, more ...[2]string) deadLetter {
	p := w.from.Partition
	ours, others := record.Unseal(w.seal, p.Topic, rec.Key, rec.Value, rec.Headers)
	var headers []record.Header
	forged := false
	for _, h := range others {
		forged = forged || h.Key == record.ReceiptHeader || h.Key == record.SkippedHeader
		headers = append(headers, record.Header{Key: record.Foreign(h.Key), Value: bytes.Clone(h.Value)})
	}
	if forged {
		w.metrics.forged.Inc()
	}
	own := len(headers)
	for _, h := range ours {
		if h.Key == record.CopyHeader { // the record is a copy itself
			headers = append(headers, record.Header{Key: h.Key, Value: bytes.Clone(h.Value)})
		}
	}
	said := [][2]string{
		{HeaderReason, string(poison.Reason)},
		{HeaderMessage, poison.Error()},
		{HeaderStream, poison.Stream},
		{HeaderTopic, p.Topic},
		{HeaderPartition, strconv.Itoa(int(p.ID))},
		{HeaderOffset, strconv.FormatInt(rec.Offset, 10)},
		{HeaderTimestamp, strconv.FormatInt(rec.Timestamp, 10)},
		{HeaderNamespace, w.cfg.Namespace},
	}
	for _, h := range append(said, more...) {
		headers = append(headers, record.Header{Key: h[0], Value: []byte(h[1])})
	}
	m := SealedMessage(w.seal, w.cfg.DeadLetterTopic, bytes.Clone(rec.Key), bytes.Clone(rec.Value), headers, len(headers)-own)
	seal := w.seal // of now
	m.WriterData = shorter(func(most int) kafka.Message {
		return cutMessage(seal, w.cfg.DeadLetterTopic, m, headers[:own], headers[own:], most)
	})
	return deadLetter{
		rangeIndex: rangeIndex, offset: rec.Offset, timestamp: rec.Timestamp,
		reason: poison.Reason, stream: poison.Stream, path: poison.Path, message: m,
	}
}

// SealedMessage returns a message to a topic, of whose headers the last few are Weir's, with a seal after them.
func SealedMessage(seal state.Seal, topic string, key, value []byte, headers []record.Header, ours int) kafka.Message {
	m := kafka.Message{Key: key, Value: value}
	for _, h := range append(headers, record.SealOf(seal, topic, key, value, headers, ours)) {
		m.Headers = append(m.Headers, kafka.Header(h))
	}
	return m
}

// shorter returns a dead letter with at most that many bytes of its record's key, as many of its value, and as many of its
// headers or none. It is the WriterData of a letter.
type shorter func(most int) kafka.Message

// cutLengths are what is tried, one after another, of a letter that does not fit into its topic.
var cutLengths = []int{256 << 10, 32 << 10, 4 << 10, 256}

// cutMessage cuts a letter to a topic, with its record's headers and Weir's.
func cutMessage(seal state.Seal, topic string, m kafka.Message, own, ours []record.Header, most int) kafka.Message {
	kept := own
	if size(kafka.Message{Headers: m.Headers[:len(own)]}) > most {
		kept = nil
	}
	headers := slices.Clone(kept)
	for _, h := range ours {
		if h.Key == HeaderMessage {
			h.Value = fmt.Appendf(nil, "%s; the letter is cut, since more does not fit into its topic: it has %d of the value's %d bytes",
				h.Value[:min(len(h.Value), most)], min(len(m.Value), most), len(m.Value))
		}
		headers = append(headers, h)
	}
	headers = append(headers, record.Header{Key: HeaderCut, Value: fmt.Appendf(nil, "%d %d", len(m.Key), len(m.Value))})
	return SealedMessage(seal, topic, m.Key[:min(len(m.Key), most)], m.Value[:min(len(m.Value), most)], headers, len(headers)-len(kept))
}

// togetherBytes is the greatest size of dead letters that are written together. Brokers refuse batches that are larger
// than a topic's max.message.bytes, 1 MiB by default. If that is less, each is written alone.
const togetherBytes = 512 << 10

// DeadLetterWriter writes dead letters so that they need hardly more room than their records had. A large one is written
// alone and compressed, as its record may have been. Whether it is too large is up to the brokers; then it is cut.
type DeadLetterWriter struct{ together, alone *kafka.Writer }

// NewDeadLetterWriter makes a writer to a topic.
func NewDeadLetterWriter(brokers []string, transport *kafka.Transport, topic string) *DeadLetterWriter {
	writer := func() *kafka.Writer {
		return &kafka.Writer{
			Addr:         kafka.TCP(brokers...),
			Topic:        topic,
			Balancer:     &kafka.Hash{},
			RequiredAcks: kafka.RequireAll,
			BatchTimeout: time.Millisecond,
			MaxAttempts:  3,
			Transport:    transport,
		}
	}
	w := &DeadLetterWriter{writer(), writer()}
	w.together.BatchBytes = togetherBytes
	w.alone.BatchSize, w.alone.BatchBytes, w.alone.Compression = 1, 1<<30, kafka.Gzip
	return w
}

// lettersAtOnce is how many dead letters are written before it is checked that all were. kafka-go tries three times to
// write each hundred of them, after one another and whether or not those before were written. All letters of a batch
// together might keep the other partitions of a worker waiting for minutes.
const lettersAtOnce = 500

// WriteMessages returns after all messages are written, or soon after one was not.
func (w *DeadLetterWriter) WriteMessages(ctx context.Context, messages ...kafka.Message) error {
	var together, alone []kafka.Message
	for _, m := range messages {
		if size(m) > togetherBytes {
			alone = append(alone, m)
		} else {
			together = append(together, m)
		}
	}
	// The large ones come first: while one is refused, the others are not written again and again.
	if err := w.writeAlone(ctx, alone); err != nil {
		return err
	}
	for some := range slices.Chunk(together, lettersAtOnce) {
		if err := w.writeTogether(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// writeTogether writes small messages, and alone those that are too large for the topic together.
func (w *DeadLetterWriter) writeTogether(ctx context.Context, messages []kafka.Message) error {
	err := w.together.WriteMessages(ctx, messages...)
	failures, ok := errors.AsType[kafka.WriteErrors](err)
	if !ok {
		return err
	}
	var refused []kafka.Message
	for i, failure := range failures {
		if tooLarge(failure) {
			refused = append(refused, messages[i])
		} else if failure != nil {
			return failure
		}
	}
	return w.writeAlone(ctx, refused)
}

// writeAlone writes messages one by one. What brokers refuse as too large is written cut: its partition would stop for good
// otherwise.
func (w *DeadLetterWriter) writeAlone(ctx context.Context, messages []kafka.Message) error {
	for _, m := range messages {
		err := firstFailure(w.alone.WriteMessages(ctx, m))
		if cut, ok := m.WriterData.(shorter); ok {
			for _, most := range cutLengths {
				if tooLarge(err) {
					err = firstFailure(w.alone.WriteMessages(ctx, cut(most)))
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tooLarge reports whether a broker has refused a batch because of its size.
func tooLarge(err error) bool {
	return errors.Is(err, kafka.MessageSizeTooLarge) || errors.Is(err, kafka.RecordListTooLarge)
}

// Close ends the writer. It does not wait for letters that a caller no longer waits for, because its context has ended:
// kafka-go tries for up to half a minute to write a hundred of them, and then the next hundred. They are written again
// when their records are read again.
func (w *DeadLetterWriter) Close() {
	for _, writer := range []*kafka.Writer{w.together, w.alone} {
		go func() { _ = writer.Close() }()
	}
}

// size is about the number of bytes of a message, and not less.
func size(m kafka.Message) int {
	const lengths = 32
	size := lengths + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		size += lengths + len(h.Key) + len(h.Value)
	}
	return size
}

// firstFailure returns the first of the errors that a kafka.Writer has made, one for each message.
func firstFailure(err error) error {
	if failures, ok := errors.AsType[kafka.WriteErrors](err); ok {
		return cmp.Or(failures...)
	}
	return err
}

// messageWriter writes dead letters.
type messageWriter interface {
	WriteMessages(ctx context.Context, messages ...kafka.Message) error
}
