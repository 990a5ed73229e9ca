package scan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// heard is a Sink that records its calls.
type heard struct {
	records []string
	lost    []int64
	fetches int
	lacking map[string]bool // values whose schema is missing
}

func (h *heard) Record(r *record.Record) error {
	if h.lacking[string(r.Value)] {
		return &record.MissingSchema{ID: int32(r.Offset)}
	}
	h.records = append(h.records, fmt.Sprintf("%s@%d", r.Value, r.Offset))
	return nil
}
func (h *heard) Lost(_ state.Partition, timestamp int64, _ error) { h.lost = append(h.lost, timestamp) }
func (h *heard) Fetching()                                        { h.fetches++ }

// supplier supplies a schema after some failures.
type supplier struct {
	sink     *heard
	failures int
}

func (s *supplier) Supply(context.Context, *record.MissingSchema) error {
	if s.failures--; s.failures >= 0 {
		return errors.New("the registry is unavailable")
	}
	s.sink.lacking = nil
	return nil
}

// A record whose schema is missing is passed again once the schema is supplied, before any later record.
func TestMissingSchemaIsSupplied(t *testing.T) {
	brokers := kafkatest.Embedded(t, map[string]int{"pay": 1}).ListenAddrs()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic("pay"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 4 {
		if err := client.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprint(i))).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	for failures, want := range map[int][]string{1: {"1@1", "2@2"}, 1 << 30: {"1@1"}} {
		sink, patience := &heard{lacking: map[string]bool{"2": true}}, time.Minute
		if failures > 1 {
			patience = 3 * time.Second
		}
		s := New(Config{Transport: transport, Bootstrap: kafka.TCP(brokers...), Schemas: &supplier{sink, failures}, Patience: patience})
		logs, err := s.Logs(t.Context(), []state.Partition{{Topic: "pay"}})
		if err != nil {
			t.Fatal(err)
		}
		r := &Range{Partition: state.Partition{Topic: "pay"}, Log: logs[0].ID, LeaderEpoch: logs[0].LeaderEpoch, Next: 1, To: 3}
		err = s.Read(t.Context(), []*Range{r}, sink)
		s.Close()
		said := ""
		if failures > 1 {
			said = "pay/0 at offset 2: the registry is unavailable"
		}
		if err == nil != (said == "") || err != nil && err.Error() != said {
			t.Errorf("got %v, want %q", err, said)
		}
		if !slices.Equal(sink.records, want) || sink.fetches == 0 || r.Next != int64(1+len(want)) {
			t.Errorf("got the records %v up to offset %d, want %v", sink.records, r.Next, want)
		}
	}
}

// A batch with a wrong checksum is fetched again, then lost like any that cannot be decoded. A batch with an unknown
// end ends the reading.
func TestBatchThatCannotBeDecoded(t *testing.T) {
	s := New(Config{Transport: new(kafka.Transport), Bootstrap: kafka.TCP("127.0.0.1:1")})
	defer s.Close()
	r, sink := &Range{Partition: state.Partition{Topic: "pay"}, Next: 3, To: 90}, new(heard)
	before := time.Now().UnixMilli()
	checksum := &fetch.CorruptError{Offset: 3, EndOffset: 7, Timestamp: 500, Reason: fetch.ErrChecksum}
	for try := 1; try <= 3; try++ {
		if err := s.pass(r, checksum, sink); err != nil || (len(sink.lost) == 1) != (try == 3) {
			t.Fatalf("try %d: error %v, lost %v; want one loss at the third try", try, err, sink.lost)
		}
	}
	if err := s.pass(r, &fetch.CorruptError{Offset: 7, EndOffset: 8, Reason: errors.New("zeros")}, sink); err != nil {
		t.Fatal(err)
	}
	if err := s.pass(r, &fetch.CorruptError{Offset: 8, EndOffset: 9, Timestamp: 500, Reason: errors.New("zeros")}, sink); err != nil {
		t.Fatal(err)
	}
	// The time of a batch that was damaged, or cannot be read, is not believed.
	if r.Next != 9 || len(sink.lost) != 3 || sink.lost[0] < before || sink.lost[1] < before || sink.lost[2] != 500 {
		t.Errorf("continues at %d, lost %v; want 9, two losses until now and one until 500", r.Next, sink.lost)
	}
	if err := s.pass(r, &fetch.CorruptError{Offset: 9, EndOffset: -1, Reason: errors.New("zeros")}, sink); err == nil {
		t.Error("no error for a batch without a known end")
	}
}

// Where retention removes records while they are read, the rest is read, if there is any.
func TestRecordsAreRemovedMeanwhile(t *testing.T) {
	s := New(Config{Transport: new(kafka.Transport), Bootstrap: kafka.TCP("127.0.0.1:1")})
	defer s.Close()
	for start, want := range map[int64]bool{3: false, 4: true, 9: true, 12: true} {
		r := &Range{Partition: state.Partition{Topic: "pay"}, Next: 3, To: 9}
		if got := s.skip(r, &fetch.OffsetOutOfRangeError{Offset: 3, LogStart: start}); got != want || want && (r.Next != start || !r.deleted) {
			t.Errorf("the log begins at %d: %v, and %+v", start, got, r)
		}
	}
}

// A log that cannot be read says why.
func TestUnavailableLog(t *testing.T) {
	s := New(Config{Transport: new(kafka.Transport), Bootstrap: kafka.TCP("127.0.0.1:1"), Patience: time.Millisecond})
	defer s.Close()
	r := &Range{Partition: state.Partition{Topic: "pay"}, To: 9}
	err := s.Read(t.Context(), []*Range{r}, new(heard))
	if err == nil || !strings.HasPrefix(err.Error(), "pay/0 cannot be read: ") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

// Reading that goes on later says of which epoch the last record was: a log that was truncated before it, and has grown again, is not
// the same.
func TestReadingGoesOnInTheSameLog(t *testing.T) {
	cluster := kafkatest.Embedded(t, map[string]int{"pay": 1})
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic("pay"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var mu sync.Mutex
	var known []string
	cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		for _, topic := range request.(*kmsg.FetchRequest).Topics {
			for _, p := range topic.Partitions {
				mu.Lock()
				known = append(known, fmt.Sprintf("%d after epoch %d", p.FetchOffset, p.LastFetchedEpoch))
				mu.Unlock()
			}
		}
		return nil, nil, false
	})
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	s := New(Config{Transport: transport, Bootstrap: kafka.TCP(cluster.ListenAddrs()...), Patience: time.Minute})
	defer s.Close()
	r := &Range{Partition: state.Partition{Topic: "pay"}}
	for n := range 2 {
		if err := client.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		logs, err := s.Logs(t.Context(), []state.Partition{r.Partition})
		if err != nil {
			t.Fatal(err)
		}
		r.Log, r.LeaderEpoch, r.To = logs[0].ID, logs[0].LeaderEpoch, int64(n+1)
		if err := s.Read(t.Context(), []*Range{r}, new(heard)); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if first, second := "0 after epoch -1", "1 after epoch 0"; !slices.Contains(known, first) || !slices.Contains(known, second) {
		t.Errorf("it asked for %q, want also %q and %q", known, first, second)
	}
	for _, k := range known {
		if k == "1 after epoch -1" {
			t.Errorf("it asked for %q", k)
		}
	}
}
