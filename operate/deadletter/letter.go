package deadletter

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/pipeline/fetch"
)

// The headers that a replay writes.
const (
	// headerReplays is, on a record that was replayed, how often it was.
	headerReplays = pipeline.HeaderPrefix + "replays"
	// headerReplayedFrom is, on a record that was replayed, the dead letter.
	headerReplayedFrom = pipeline.HeaderPrefix + "replayed-from"
	// headerReceipt is, on a receipt, the source of the letter replayed, and
	// headerReceiptTimestamp the timestamp of that record.
	headerReceipt          = pipeline.HeaderPrefix + "receipt"
	headerReceiptTimestamp = pipeline.HeaderPrefix + "receipt-timestamp"
)

// Place is where a record stands.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// String is topic/partition/offset.
func (p Place) String() string { return fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset) }

// ParsePlace reads topic/partition/offset.
func ParsePlace(text string) (Place, error) {
	if parts := strings.Split(text, "/"); len(parts) == 3 && parts[0] != "" {
		partition, err1 := strconv.ParseInt(parts[1], 10, 32)
		offset, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err1 == nil && err2 == nil && partition >= 0 && offset >= 0 {
			return Place{parts[0], int32(partition), offset}, nil
		}
	}
	return Place{}, fmt.Errorf("%q is no place of a record: write topic/partition/offset, such as transactions/3/1040", text)
}

// Header is one header of a record; a Value of nil is none.
type Header struct {
	Key   string
	Value []byte
}

// Letter is a dead letter.
type Letter struct {
	At       Place // in the dead-letter topic
	SetAside int64 // when it was written there, in ms since 1970

	// Source is where the record was that could not be used, and Timestamp that
	// record's, in ms.
	Source    Place
	Timestamp int64
	Reason    string
	Message   string
	Stream    string // empty where no stream was found for it
	Replays   int    // how often the event had been replayed before

	// The original record: Headers are without those that Weir has written. A
	// listing has none of it.
	Key, Value []byte
	Headers    []Header

	// Replayed says that it has a receipt.
	Replayed bool
}

// event tells the event of a letter from all others. Where it stood would do,
// but for topics that are deleted and made anew.
type event struct {
	Place
	timestamp int64
}

// event is the letter's; two letters may have the same.
func (l *Letter) event() event { return event{l.Source, l.Timestamp} }

// parse reads a record of the dead-letter topic. It is a letter, a receipt for
// the letters of an event, or neither.
func parse(at Place, rec *fetch.Record) (letter *Letter, receipt event) {
	last := func(key string) string {
		value, _ := rec.Headers.Last(key)
		return string(value)
	}
	if source, ok := rec.Headers.Last(headerReceipt); ok {
		place, err1 := ParsePlace(string(source))
		timestamp, err2 := strconv.ParseInt(last(headerReceiptTimestamp), 10, 64)
		if err1 == nil && err2 == nil {
			receipt = event{place, timestamp}
		}
		return nil, receipt
	}
	source, err := ParsePlace(last(pipeline.HeaderTopic) + "/" + last(pipeline.HeaderPartition) + "/" + last(pipeline.HeaderOffset))
	if err != nil {
		return nil, event{}
	}
	timestamp, err := strconv.ParseInt(last(pipeline.HeaderTimestamp), 10, 64)
	if err != nil {
		return nil, event{}
	}
	replays, _ := strconv.Atoi(last(headerReplays)) // none is 0
	return &Letter{
		At: at, SetAside: rec.Timestamp, Source: source, Timestamp: timestamp, Replays: replays,
		Reason: last(pipeline.HeaderReason), Message: last(pipeline.HeaderMessage), Stream: last(pipeline.HeaderStream),
	}, event{}
}

// fill takes in the original record, which is copied.
func (l *Letter) fill(rec *fetch.Record) {
	l.Key, l.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
	for key, value := range rec.Headers.All() {
		if !strings.HasPrefix(key, pipeline.HeaderPrefix) {
			l.Headers = append(l.Headers, Header{key, bytes.Clone(value)})
		}
	}
}
