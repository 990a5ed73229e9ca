package scan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// A log is read from the first needed record, and states since when it has all records.
func TestLogStart(t *testing.T) {
	const now = 900
	none := fetch.Dated{Offset: -1}
	for name, test := range map[string]struct {
		start, end  int64
		first       fetch.Dated
		moment      int64
		from, since int64
	}{
		"everything":                          {0, 9, fetch.Dated{Offset: 0, Timestamp: 100}, 0, 0, state.MinTime},
		"everything, without timestamps":      {0, 9, none, 0, 0, state.MinTime},
		"all records are new enough":          {0, 9, fetch.Dated{Offset: 0, Timestamp: 100}, 50, 0, state.MinTime},
		"some are older":                      {0, 9, fetch.Dated{Offset: 4, Timestamp: 100}, 50, 4, 50},
		"all are older":                       {0, 9, none, 50, 9, 50},
		"nothing was written":                 {0, 0, none, 50, 0, state.MinTime},
		"retention has removed some":          {3, 9, fetch.Dated{Offset: 3, Timestamp: 100}, 0, 3, 101},
		"compaction has taken the first":      {3, 9, fetch.Dated{Offset: 5, Timestamp: 100}, 0, 3, 101},
		"retention has removed some too new":  {3, 9, fetch.Dated{Offset: 3, Timestamp: 100}, 50, 3, 101},
		"retention has removed older ones":    {3, 9, fetch.Dated{Offset: 4, Timestamp: 100}, 50, 4, 50},
		"retention has left only older":       {3, 9, none, 50, 9, 50},
		"retention has removed all":           {9, 9, none, 50, 9, now + 1},
		"retention has removed all, at first": {9, 9, none, 0, 9, now + 1},
	} {
		from, since := logStart(&fetch.Log{Start: test.start, End: test.end, Stable: test.end}, test.first, test.moment, now)
		if from != test.from || since != test.since {
			t.Errorf("%s: from %d, complete since %d; want %d and %d", name, from, since, test.from, test.since)
		}
	}
}

// Partitions are read from a moment on, to their ends when they were opened.
func TestLogs(t *testing.T) {
	brokers := kafkatest.Embedded(t, map[string]int{"pay": 2, "login": 1}).ListenAddrs()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	minute := func(n int) time.Time { return time.UnixMilli(1_700_000_000_000).Add(time.Duration(n) * time.Minute) }
	write := func(topic string, partition int32, from, to int) {
		for i := from; i < to; i++ {
			r := &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil, "%s%d", topic, i), Timestamp: minute(i)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("pay", 0, 0, 10)
	write("pay", 1, 10, 12)
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	scanner := New(Config{Transport: transport, Bootstrap: kafka.TCP(brokers...), Patience: 2 * time.Second})
	defer scanner.Close()
	partitions := []state.Partition{{Topic: "pay"}, {Topic: "pay", ID: 1}, {Topic: "login"}}
	open := func(moment int64) []*Log {
		logs, err := Open(t.Context(), scanner, partitions, moment, nil)
		if err != nil {
			t.Fatal(err)
		}
		return logs
	}
	check := func(logs []*Log, want ...string) {
		t.Helper()
		for i, l := range logs {
			var got []string
			err := l.Read(t.Context(), func(r *record.Record) error {
				got = append(got, fmt.Sprintf("%s@%d", r.Value, r.Offset))
				return nil
			})
			since := "all"
			if l.Since() != state.MinTime {
				since = time.UnixMilli(l.Since()).Sub(minute(0)).String()
			}
			read, of := l.Progress()
			if got := fmt.Sprintf("%s %s: %s (%d of %d)", l.Name(), since, strings.Join(got, " "), read, of); err != nil || got != want[i] {
				t.Errorf("error %v\ngot  %s\nwant %s", err, got, want[i])
			}
		}
	}
	all := open(0)
	write("pay", 0, 20, 21) // after that
	check(all, "pay/0 all: pay0@0 pay1@1 pay2@2 pay3@3 pay4@4 pay5@5 pay6@6 pay7@7 pay8@8 pay9@9 (10 of 10)", "pay/1 all: pay10@0 pay11@1 (2 of 2)", "login/0 all:  (0 of 0)")
	check(open(minute(8).UnixMilli()), "pay/0 8m0s: pay8@8 pay9@9 pay20@10 (3 of 3)", "pay/1 all: pay10@0 pay11@1 (2 of 2)", "login/0 all:  (0 of 0)")
	known, err := Open(t.Context(), scanner, partitions, minute(8).UnixMilli(), []*record.Stream{{Topic: "pay", Dedup: 2 * time.Minute}, {Topic: "login"}})
	if err != nil || known[0].From() != 8 || known[1].From() != 0 {
		t.Fatalf("error %v, the records from %d and %d on count, want 8 and 0", err, known[0].From(), known[1].From())
	}
	check(known, "pay/0 8m0s: pay5@5 pay6@6 pay7@7 pay8@8 pay9@9 pay20@10 (6 of 6)", "pay/1 all: pay10@0 pay11@1 (2 of 2)", "login/0 all:  (0 of 0)")
	cut := open(0)
	cut[0].Newest(2)
	cut[1].Newest(0)
	check(cut[:1], "pay/0 9m0s: pay9@9 pay20@10 (2 of 2)")
	if err := cut[1].Read(t.Context(), nil); err != nil || cut[1].Since() != state.MaxTime {
		t.Errorf("error %v; complete since %d, although nothing was read", err, cut[1].Since())
	}
	deleteRecords(t, client, "pay", 0, 9)
	check(open(0), "pay/0 9m0.001s: pay9@9 pay20@10 (2 of 2)", "pay/1 all: pay10@0 pay11@1 (2 of 2)", "login/0 all:  (0 of 0)")

	refused := errors.New("refused")
	if err := open(0)[0].Read(t.Context(), func(*record.Record) error { return refused }); !errors.Is(err, refused) || err.Error() != "pay/0 at offset 9: refused" {
		t.Errorf("a sink that fails: got error %v", err)
	}
	if _, err := Open(t.Context(), scanner, append(slices.Clone(partitions), state.Partition{Topic: "none"}), 0, nil); err == nil || !strings.Contains(err.Error(), "none/0") {
		t.Errorf("a missing topic: got error %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := open(0)[0].Read(canceled, func(*record.Record) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context: got error %v", err)
	}
}

// deleteRecords deletes the records of a partition before an offset.
func deleteRecords(t *testing.T, client *kgo.Client, topic string, partition int32, before int64) {
	t.Helper()
	request, of, p := kmsg.NewPtrDeleteRecordsRequest(), kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = partition, before
	of.Topic, of.Partitions = topic, append(of.Partitions, p)
	request.Topics, request.TimeoutMillis = append(request.Topics, of), 5000
	response, err := request.RequestWith(t.Context(), client)
	if err != nil || response.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatal(err, response)
	}
}

// A batch that cannot be decoded may have held records up to its newest timestamp.
func TestLogLosesABatch(t *testing.T) {
	l := &Log{since: state.MinTime}
	l.Lost(state.Partition{}, 500, nil)
	l.Lost(state.Partition{}, 400, errors.New("zeros"))
	if l.Since() != 501 {
		t.Errorf("complete since %d, want 501", l.Since())
	}
}

// Records that retention removes while a log is read are missing, and the log states up to when.
func TestRecordsDeletedMeanwhile(t *testing.T) {
	brokers := kafkatest.Embedded(t, map[string]int{"pay": 1}).ListenAddrs()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic("pay"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 5 {
		r := &kgo.Record{Value: fmt.Append(nil, i), Timestamp: time.UnixMilli(int64(100 + i))}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	scanner := New(Config{Transport: transport, Bootstrap: kafka.TCP(brokers...), Patience: 2 * time.Second})
	defer scanner.Close()
	logs, err := Open(t.Context(), scanner, []state.Partition{{Topic: "pay"}}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	deleteRecords(t, client, "pay", 0, 3)
	var got []string
	err = logs[0].Read(t.Context(), func(r *record.Record) error { got = append(got, string(r.Value)); return nil })
	if err != nil || !slices.Equal(got, []string{"3", "4"}) || logs[0].Since() != 104 {
		t.Errorf("error %v, read %v, complete since %d; want 3 and 4, since 104", err, got, logs[0].Since())
	}
}
