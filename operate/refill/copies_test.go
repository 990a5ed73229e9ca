package refill

import (
	"fmt"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/state"
)

// An event counts once in what is restored: the first of its records that can be used, of those that are read.
func TestCopiesOfDeadLetters(t *testing.T) {
	registry := defined.Registry(t, `
streams: {pay: {topic: payments, timestamp: {path: at, unit: ms}, fields: {user: string}}}
features:
  pays: COUNT(lifetime, pay, user)
`)
	const good, bad = `{"user": "u1", "at": 1}`, `{"user": 1, "at": 1}`
	payments := state.Partition{Topic: "payments"}
	l := Open(Config{Config: scan.Config{Transport: &kafka.Transport{}}}, registry, &Want{
		Group: registry.Series[0].Group, Entity: "u1", Series: map[*state.Series]bool{registry.Series[0]: true}, Seal: defined.Seal(),
	})
	defer l.Close()
	l.parts[payments] = &part{Range: scan.Range{Partition: payments}, once: record.NewOnce(10, defined.Seal())}
	for i, c := range []struct {
		value  string
		copyOf int64 // -1 for none
		events int64 // so far
	}{
		{good, -1, 1},
		{good, 10, 1}, // its original was read
		{good, 11, 1}, // a copy of a copy
		{good, 5, 2},  // its original comes before what is read
		{bad, -1, 2},
		{good, 14, 3}, // its original could not be used: it has another timestamp
		{good, 15, 3},
		{bad, -1, 3},
		{bad, 17, 3},
		{good, 18, 4},
		{good, 17, 4}, // of another namespace
		{good, 5, 4},
	} {
		rec := &record.Record{Partition: payments, Offset: int64(10 + i), Timestamp: 1, Value: []byte(c.value)}
		if c.copyOf >= 0 {
			defined.Copy(rec, fmt.Sprintf("shop payments/0/%d 1 ", c.copyOf))
		}
		if err := l.Record(rec); err != nil {
			t.Fatal(err)
		}
		if l.Events != c.events || l.Records != int64(i+1) {
			t.Errorf("after record %d: got %d events of %d records, want %d of %d", i, l.Events, l.Records, c.events, i+1)
		}
	}
}

// An event that comes again counts once in what is restored, also if it first came before what counts.
func TestRepeatedEvents(t *testing.T) {
	registry := defined.Registry(t, `
streams: {pay: {topic: payments, timestamp: {path: at, unit: ms}, id: id, dedup: 1m, fields: {user: string}}}
features:
  pays: COUNT(lifetime, pay, user)
`)
	payments := state.Partition{Topic: "payments"}
	l := Open(Config{Config: scan.Config{Transport: &kafka.Transport{}}}, registry, &Want{
		Group: registry.Series[0].Group, Entity: "u1", Series: map[*state.Series]bool{registry.Series[0]: true}, Seal: defined.Seal(),
	})
	defer l.Close()
	l.parts[payments] = &part{
		Range: scan.Range{Partition: payments}, once: record.NewOnce(12, defined.Seal()), from: 12,
		earlier: record.NewEarlier(registry.Streams, "payments", state.NewSecret()),
	}
	for i, c := range []struct {
		id     string
		events int64 // so far
	}{{"a", 0}, {"b", 0}, {"a", 0}, {"c", 1}, {"c", 1}, {"d", 2}, {"b", 2}} {
		rec := &record.Record{Partition: payments, Offset: int64(10 + i), Timestamp: 1, Value: fmt.Appendf(nil, `{"user": "u1", "id": %q, "at": 1}`, c.id)}
		if err := l.Record(rec); err != nil {
			t.Fatal(err)
		}
		if l.Events != c.events || l.Records != max(0, int64(i-1)) {
			t.Errorf("after record %d: got %d events of %d records, want %d of %d", i, l.Events, l.Records, c.events, max(0, i-1))
		}
	}
}
