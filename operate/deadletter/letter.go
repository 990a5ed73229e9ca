package deadletter

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/state"
)

// The headers that a replay writes.
const (
	// headerReplays is, on a replayed record, how often it was replayed.
	headerReplays = record.HeaderPrefix + "replays"
	// headerReplayedFrom is, on a replayed record, the dead letter.
	headerReplayedFrom = record.HeaderPrefix + "replayed-from"
	// headerReceipt is, on a receipt, the source of the letter replayed, and headerReceiptTimestamp
	// the timestamp of that record.
	headerReceipt          = record.ReceiptHeader
	headerReceiptTimestamp = record.HeaderPrefix + "receipt-timestamp"
	headerReceiptNamespace = record.HeaderPrefix + "receipt-namespace"
)

// RecordID is the location of a record in Kafka.
type RecordID struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// String is topic/partition/offset.
func (p RecordID) String() string { return fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset) }

// partition returns the partition of the record.
func (p RecordID) partition() state.Partition {
	return state.Partition{Topic: p.Topic, ID: p.Partition}
}

// ParseRecordID reads topic/partition/offset.
func ParseRecordID(text string) (RecordID, error) {
	if parts := strings.Split(text, "/"); len(parts) == 3 && parts[0] != "" {
		partition, err1 := strconv.ParseInt(parts[1], 10, 32)
		offset, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err1 == nil && err2 == nil && partition >= 0 && offset >= 0 {
			return RecordID{parts[0], int32(partition), offset}, nil
		}
	}
	return RecordID{}, fmt.Errorf("%q does not name a record: write topic/partition/offset, such as transactions/3/1040", text)
}

// Letter is a dead letter.
type Letter struct {
	At       RecordID `json:"at"`        // in the dead-letter topic
	SetAside int64    `json:"set_aside"` // when it was written there, in ms since 1970
	// Source is the location of the record that could not be used, and Timestamp its timestamp, in
	// ms.
	Source    RecordID `json:"source"`
	Timestamp int64    `json:"timestamp"`
	Namespace string   `json:"namespace,omitempty"` // of the state in which it does not count
	Reason    string   `json:"reason"`
	Message   string   `json:"message"`
	Stream    string   `json:"stream,omitempty"` // empty if no stream was found for it
	Replays   int      `json:"replays"`          // how often the event had been replayed before
	// Replayed means that it has a receipt. That is known of a sealed letter only.
	Replayed bool `json:"replayed"`
	// Sealed means that a processor of the reader's namespace, or of one with the same seal, has written the letter.
	// Others may be forged, and are shown but never replayed.
	Sealed bool `json:"sealed"`
	// Cut means that the letter has only the beginnings of its record's key and value, because more did not fit.
	Cut bool `json:"cut,omitempty"`

	// Copies are what the headers of the record say if it is a copy itself: of its original, and of the copies in between.
	Copies []*record.Copy `json:"-"`
	// The original record, without the headers that a letter adds. A listing does not have it.
	Key, Value []byte          `json:"-"`
	Headers    []record.Header `json:"-"`
}

// event identifies the event of a letter in a namespace. Its ID would suffice for the event if topics were never deleted
// and created again.
type event struct {
	RecordID
	timestamp int64
	namespace string
}

// event returns the event of a letter; two letters may have the same event.
func (l *Letter) event() event { return event{l.Source, l.Timestamp, l.Namespace} }

// parse parses a record of the dead-letter topic with the headers that Weir has written, see record.Unseal. It is a
// letter, a receipt for the letters of an event, or neither. A letter without a seal has the last headers of their names.
func parse(at RecordID, rec *record.Record, ours record.HeaderList) (letter *Letter, receipt event) {
	last := func(key string) string {
		value, ok := ours.Last(key)
		if ours == nil && !ok {
			value, _ = rec.Headers.Last(key)
		}
		return string(value)
	}
	if source, ok := ours.Last(headerReceipt); ok {
		id, err1 := ParseRecordID(string(source))
		timestamp, err2 := strconv.ParseInt(last(headerReceiptTimestamp), 10, 64)
		if err1 == nil && err2 == nil {
			receipt = event{id, timestamp, last(headerReceiptNamespace)}
		}
		return nil, receipt
	}
	source, err := ParseRecordID(last(pipeline.HeaderTopic) + "/" + last(pipeline.HeaderPartition) + "/" + last(pipeline.HeaderOffset))
	if err != nil {
		return nil, event{}
	}
	timestamp, err := strconv.ParseInt(last(pipeline.HeaderTimestamp), 10, 64)
	if err != nil {
		return nil, event{}
	}
	list := copies(ours, source)
	_, cut := ours.Last(pipeline.HeaderCut)
	return &Letter{
		At: at, SetAside: rec.Timestamp, Source: source, Timestamp: timestamp, Replays: len(list), Copies: list,
		Namespace: last(pipeline.HeaderNamespace), Sealed: ours != nil, Cut: cut,
		Reason: last(pipeline.HeaderReason), Message: last(pipeline.HeaderMessage), Stream: last(pipeline.HeaderStream),
	}, event{}
}

// copies returns what the headers of a letter say of a record that is a copy, in the order in which they were written.
func copies(ours []record.Header, source RecordID) (list []*record.Copy) {
	for _, h := range ours {
		if h.Key != record.CopyHeader {
			continue
		}
		c := record.ParseCopy(h.Value)
		if c != nil && c.Partition == source.partition() && c.Offset < source.Offset && len(c.Timestamps) == len(list)+1 {
			list = append(list, c)
		}
	}
	return list
}

// fill sets the original record, which is copied. Its own headers, others than Weir's, have their own names again. Those
// of a letter without a seal are those before the reason.
func (l *Letter) fill(rec *record.Record, others []record.Header) {
	l.Key, l.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
	if !l.Sealed {
		for i, h := range slices.Backward(others) {
			if h.Key == pipeline.HeaderReason {
				others = others[:i]
				break
			}
		}
	}
	for _, h := range others {
		l.Headers = append(l.Headers, record.Header{Key: record.Native(h.Key), Value: bytes.Clone(h.Value)})
	}
}
