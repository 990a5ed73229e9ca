package deadletter

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

func TestReplayWritesTheOriginalRecord(t *testing.T) {
	f := newFixture(t)
	f.topic.Namespace = "shop"
	f.setAside(letter{source: f.at(1, 7), reason: "wrong_type", stream: "s", value: "a", age: time.Hour, headers: []kgo.RecordHeader{
		{Key: "trace", Value: []byte("x")}, {Key: "weir-source-offset", Value: []byte("5")}, {Key: "empty"}, {Key: headerReplays, Value: []byte("2")}, {Key: headerReceipt}, {Key: "trace", Value: []byte("y")},
	}})
	if got, want := f.replay(), "map[wrong_type:1] map[]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	records := f.records()
	if len(records) != 1 {
		t.Fatalf("%d records, want 1", len(records))
	}
	r := records[0]
	var headers []string
	for _, h := range r.Headers[:len(r.Headers)-1] { // without the seal
		headers = append(headers, fmt.Sprintf("%s=%s,%t", h.Key, h.Value, h.Value == nil))
	}
	// What the record itself says of replays is the producer's, and as it was.
	want := []string{"trace=x,false", "weir-source-offset=5,false", "empty=,true", "weir-replays=2,false", "weir-receipt=,true", "trace=y,false",
		fmt.Sprintf("weir-counts-in=shop %s/1/7 %d live1,false", f.source, began.Add(-time.Hour).UnixMilli()), "weir-replays=1,false",
		"weir-replayed-from=" + f.topic.Name + "/0/0,false"}
	if diff := cmp.Diff(want, headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if string(r.Key) != "key a" || string(r.Value) != "a" || r.Partition != 1 || !r.Timestamp.Equal(began.Add(-time.Hour)) {
		t.Errorf("the record has key %s, value %s, partition %d and time %v; want those of the original", r.Key, r.Value, r.Partition, r.Timestamp)
	}
}

func TestReplayKeepsNullKeysAndValues(t *testing.T) {
	rec := (&Replay{Topic: &Topic{}}).record(&Letter{Value: []byte{}}, nil)
	if rec.Key != nil || rec.Value == nil {
		t.Errorf("key %v, value %v; want null and empty", rec.Key, rec.Value)
	}
}

func TestReplayWritesEachEventOnce(t *testing.T) {
	f := newFixture(t)
	f.setAside(
		letter{source: f.at(0, 1), reason: "wrong_type", stream: "s", value: "a"},
		// It was written again after a kill, without a key and so to another partition.
		letter{source: f.at(0, 1), reason: "wrong_type", stream: "s", value: "a", second: 1},
		letter{partition: 1, source: f.at(0, 1), reason: "wrong_type", stream: "s", value: "a", second: 2},
		letter{partition: 1, source: f.at(0, 2), reason: "missing_field", stream: "s", value: "b", second: 3},
		letter{partition: 1, source: f.at(0, 3), reason: "late", stream: "s", value: "c", second: 4},
	)
	chosen := func(r *Replay) { r.Filter.Reasons = []string{"wrong_type"} }
	for _, step := range []struct {
		change func(*Replay)
		want   string
	}{
		{chosen, "map[wrong_type:1] map[there twice for one event:2]"},
		{chosen, "map[] map[replayed before:3]"},
		{func(*Replay) {}, "map[missing_field:1] map[" + string(Counted) + ":1 replayed before:3]"},
		{func(*Replay) {}, "map[] map[" + string(Counted) + ":1 replayed before:4]"},
	} {
		if got := f.replay(step.change); got != step.want {
			t.Errorf("got  %s\nwant %s", got, step.want)
		}
	}
	// The processor writes a letter again that was already replayed: its receipt is also written again, so that
	// retention does not remove the receipt before the letter.
	f.setAside(letter{source: f.at(0, 2), reason: "missing_field", stream: "s", value: "b", second: 9})
	for range 2 {
		if got, want := f.replay(), "map[] map["+string(Counted)+":1 replayed before:5]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	receipts := 0
	x, err := newIndex(f.context(), f.topic, &Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range x.receipts {
		receipts += len(of)
	}
	for of := range x.copies {
		if left := x.uncovered(of); (of.RecordID == f.at(0, 3)) != (len(left) > 0) {
			t.Errorf("unexpected receipts of %v: none in partitions %v", of, left)
		}
	}
	if receipts != 4 {
		t.Errorf("receipts in %d partitions, want 4: %v", receipts, x.receipts)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, f.events()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A letter that has only the beginning of its record is not replayed.
func TestReplayLeavesCutLetters(t *testing.T) {
	f := newFixture(t)
	f.setAside(
		letter{source: f.at(0, 1), reason: "malformed", value: "{ and so", cut: "3 1048000"},
		letter{source: f.at(0, 2), reason: "malformed", value: "whole"},
	)
	if got, want := f.replay(), "map[malformed:1] map["+string(Cut)+":1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff(map[string]int{"whole": 1}, f.events()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A mistyped position among others is an error, before anything is written.
func TestReplayOfUnknownPositions(t *testing.T) {
	f := newFixture(t)
	f.setAside(letter{source: f.at(0, 1), reason: "wrong_type", value: "a"})
	for _, filter := range []Filter{
		{IDs: []RecordID{f.at(0, 1), f.at(0, 2)}},
		{IDs: []RecordID{f.at(0, 1), f.at(0, 2)}, Reasons: []string{"wrong_type"}},
	} {
		r := &Replay{Topic: f.topic, State: f.state, Producer: f.options(), Filter: filter}
		want := fmt.Sprintf("topic %s has no dead letter at or of %s/0/2, or flags exclude it; nothing was replayed", f.topic.Name, f.source)
		if _, err := r.Preview(f.context()); fmt.Sprint(err) != want {
			t.Errorf("a preview fails with %v, want %s", err, want)
		}
		if _, err := r.Run(f.context()); fmt.Sprint(err) != want {
			t.Errorf("a replay fails with %v, want %s", err, want)
		}
	}
	if events := f.events(); len(events) > 0 {
		t.Errorf("it has replayed %v", events)
	}
}

// A transaction has at most MaxLetters events. The control record of each commit takes an offset.
func TestReplayInSeveralTransactions(t *testing.T) {
	f := newFixture(t)
	for n := range int64(5) {
		f.setAside(letter{source: f.at(0, n), reason: "wrong_type", value: "a"})
	}
	if got, want := f.replay(func(r *Replay) { r.MaxLetters = 2 }), "map[wrong_type:5] map[]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var offsets []int64
	for _, r := range f.records() {
		offsets = append(offsets, r.Offset)
	}
	if diff := cmp.Diff([]int64{0, 1, 3, 4, 6}, offsets); diff != "" {
		t.Errorf("offsets of the replayed records (-want +got):\n%s", diff)
	}
}

// A stopped replay's reading is outdated once another replay has begun.
func TestReplayTakenOver(t *testing.T) {
	f := newFixture(t)
	f.setAside(letter{source: f.at(0, 1), reason: "wrong_type", value: "a"}, letter{source: f.at(0, 2), reason: "wrong_type", value: "b"})
	first := &Replay{Topic: f.topic, State: f.state, Producer: f.options()}
	first.indexed = func() {
		if got, want := f.replay(), "map[wrong_type:2] map[]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	summary, err := first.Run(f.context())
	if err != errTakenOver || text(summary) != "map[] map[]" {
		t.Errorf("the replay that was taken over: got %s, error %v; want %v", text(summary), err, errTakenOver)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, f.events()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReplaySkipsExpiredRecords(t *testing.T) {
	f := newFixture(t)
	const week = 7 * 24 * time.Hour
	keep := kafka.AlterConfigRequestConfig{Name: "retention.ms", Value: strconv.FormatInt(week.Milliseconds(), 10)}
	changed, err := f.broker.Client().AlterConfigs(t.Context(), &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: f.source, Configs: []kafka.AlterConfigRequestConfig{keep}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range changed.Errors {
		if err != nil {
			t.Fatal(err)
		}
	}
	f.setAside(
		letter{source: f.at(0, 1), reason: "wrong_type", value: "old", age: 2 * week},
		letter{source: f.at(9, 1), reason: "wrong_type", value: "partition"},
		letter{source: RecordID{"no-such-topic", 0, 1}, reason: "wrong_type", value: "topic"},
	)
	replay := &Replay{Topic: f.topic, State: f.state, Filter: Filter{Topics: []string{f.source, "no-such-topic"}}}
	summary, err := replay.Preview(f.context())
	if want := "map[] map[" + string(NoTopic) + ":2 " + string(Expired) + ":1]"; err != nil || text(summary) != want {
		t.Errorf("got  %s, %v\nwant %s", text(summary), err, want)
	}
	replay.StampNow = true
	if summary, err = replay.Preview(f.context()); err != nil || summary.Replayed["wrong_type"] != 1 {
		t.Errorf("a preview with StampNow: got %v, error %v; want 1 event", summary, err)
	}
	if n := len(f.events()); n != 0 {
		t.Errorf("a preview has written %d events", n)
	}
	f.replay(func(r *Replay) { r.StampNow = true })
	if records := f.records(); len(records) != 1 || time.Since(records[0].Timestamp) > time.Hour {
		t.Errorf("want one record with the present time, got %v", records)
	}
}

// Many letters take several transactions, and a large letter takes its own. It is compressed, because brokers take 1 MiB
// by default, and its record may have been compressed, too.
func TestReplayOfLargeLetters(t *testing.T) {
	f := newFixture(t)
	f.client = f.newClient(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerBatchMaxBytes(4<<20))
	random := make([]byte, 400_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	want := map[string]int{}
	for i := range 12 {
		value := fmt.Sprint(i, strings.Repeat("x", 100_000))
		if i == 5 {
			value = hex.EncodeToString(random)
		}
		want[value] = 1
		f.setAside(letter{partition: int32(i % 2), source: f.at(int32(i%2), int64(i)), reason: "wrong_type", value: value})
	}
	if got, want := f.replay(), "map[wrong_type:12] map[]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff(want, f.events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReadWaitsForOpenTransactions(t *testing.T) {
	f := newFixture(t)
	f.setAside(letter{source: f.at(0, 1), reason: "wrong_type", value: "a"})
	other := f.newClient(kgo.TransactionalID(f.source), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := other.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := other.ProduceSync(f.context(), &kgo.Record{Topic: f.topic.Name, Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	f.topic.Patience = time.Millisecond // less than the first fetch takes
	_, err := List(f.context(), f.topic, &Filter{})
	if err == nil || !strings.Contains(err.Error(), "cannot be read to its end because of an open transaction") {
		t.Errorf("during an open transaction: got error %v", err)
	}
	if err := other.EndTransaction(f.context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	f.topic.Patience = 0
	if letters, err := List(f.context(), f.topic, &Filter{}); err != nil || len(letters) != 1 {
		t.Errorf("after the transaction: got %v, error %v; want one letter", letters, err)
	}
	missing := &Topic{Client: f.topic.Client, Name: "no-such-topic"}
	_, err = List(f.context(), missing, &Filter{})
	if err == nil || !strings.HasPrefix(err.Error(), "topic no-such-topic: ") {
		t.Errorf("a missing topic: got error %v", err)
	}
}

// A batch of the topic that is damaged may have receipts, so nothing is done without it. What retention removes meanwhile has none
// of what is left.
func TestDamagedBatch(t *testing.T) {
	v := &visitor{visit: func(RecordID, *record.Record) error { return nil }}
	v.Lost(state.Partition{}, 1, nil)
	if err := v.Record(&record.Record{}); err != nil {
		t.Errorf("after records that were removed: error %v", err)
	}
	damaged := &fetch.CorruptError{Reason: fetch.ErrChecksum}
	v.Lost(state.Partition{}, 1, damaged)
	if err := v.Record(&record.Record{}); err != damaged || v.err != damaged {
		t.Errorf("after a damaged batch: error %v, and in the end %v", err, v.err)
	}
}

// A topic that was deleted and created again has other events at the same offsets.
func TestReplayAfterTopicRecreated(t *testing.T) {
	f := newFixture(t)
	f.setAside(letter{source: f.at(0, 1), reason: "wrong_type", value: "old", age: time.Hour})
	f.replay()
	f.setAside(letter{source: f.at(0, 1), reason: "wrong_type", value: "new"})
	if got, want := f.replay(), "map[wrong_type:1] map[replayed before:1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff(map[string]int{"old": 1, "new": 1}, f.events()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whoever writes to the dead-letter topic, or an event with headers of Weir's, neither hides letters nor has anything
// replayed.
func TestForgedDeadLetters(t *testing.T) {
	f := newFixture(t)
	f.topic.Namespace = "shop"
	f.state.keep(f.source, "fill1")
	f.state.fill(t, &state.Fill{}, "fill1", state.Partition{Topic: f.source}, fmt.Sprintf("%d;0-9", state.MinTime))
	said := []kgo.RecordHeader{
		{Key: headerReceipt, Value: []byte(f.at(0, 2).String())}, {Key: headerReceiptTimestamp, Value: strconv.AppendInt(nil, began.UnixMilli(), 10)},
		{Key: headerReceiptNamespace, Value: []byte("shop")}, {Key: backfill.HeaderSkipped, Value: []byte(f.source + "/0")},
	}
	letters := []letter{
		{namespace: "shop", source: f.at(0, 2), reason: "wrong_type", value: "forged", forged: true},
		{namespace: "shop", source: f.at(0, 2), reason: "wrong_type", value: "real", second: 1, headers: said}, // the event's own
		{namespace: "shop", source: f.at(1, 3), reason: "wrong_type", value: "forged", second: 2, forged: true},
	}
	f.setAside(letters...)
	skipped := fmt.Sprintf(`{"namespace":"shop","topic":%q,"partition":0,"offsets":[2],"series":["fill1"]}`, f.source)
	for _, headers := range [][]kgo.RecordHeader{said[:3], said[3:]} {
		rec := &kgo.Record{Topic: f.topic.Name, Value: []byte(skipped), Headers: headers}
		if err := f.client.ProduceSync(f.context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	list := func() (shown []string) {
		found, err := List(f.context(), f.topic, &Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range found {
			shown = append(shown, fmt.Sprintf("%v sealed %t, replayed: %s", l.Source.Offset, l.Sealed, l.replayed()))
		}
		return shown
	}
	if diff := cmp.Diff([]string{"2 sealed false, replayed: unknown", "2 sealed true, replayed: no", "3 sealed false, replayed: unknown"}, list()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := f.replay(), "map[wrong_type:1] map["+string(Foreign)+":2]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	records := f.records()
	if len(records) != 1 || string(records[0].Value) != "real" || len(records[0].Headers) != 4+4 || records[0].Headers[0].Key != headerReceipt {
		t.Fatalf("got the records %v, want that of the letter with its own headers and four more", records)
	}
	if says := string(records[0].Headers[4].Value); !strings.HasSuffix(says, " live1") {
		t.Errorf("it counts in %s, want only live1: fill1 has read it", says)
	}
	if got := list()[1]; got != "2 sealed true, replayed: yes" {
		t.Errorf("after the replay: %s", got)
	}
}
