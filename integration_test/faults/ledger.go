package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/integration_test/faults/workload"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/state"
)

// ledger holds every record that counts: the committed records of the logs, and the applied records of deleted or
// truncated logs.
type ledger struct {
	round   *round
	records []*kgo.Record
	next    map[state.Partition]int64 // the next offset to take
	latest  int64                     // the greatest timestamp of a record, rows included, in ms
}

func newLedger(r *round) *ledger { return &ledger{round: r, next: map[state.Partition]int64{}} }

// take adds the records written to the logs since the last take.
func (l *ledger) take() {
	for topic, n := range map[string]int{workload.Payments: l.round.scenario.Partitions, workload.Logins: 1} {
		topic += l.round.suffix
		byPartition := l.round.read(topic)
		for _, p := range partitionsOf(topic, n) {
			for _, r := range byPartition[p.ID] {
				if r.Offset >= l.next[p] {
					l.records = append(l.records, r)
					l.next[p] = r.Offset + 1
				}
			}
		}
	}
}

// diverge records that a log has other records from an offset on.
func (l *ledger) diverge(p state.Partition, offset int64) { l.next[p] = min(l.next[p], offset) }

// loop returns the model of all records and of the rows that are in their topics, its clock, and the places of poison. It notes the
// latest.
func (l *ledger) loop(registry *features.Registry) (loop *model.Model, clock int64, poison map[string]bool) {
	loop, poison = model.New(registry), map[string]bool{}
	for _, r := range l.records {
		if err := loop.Apply(applied(r)); err != nil {
			poison[fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)] = true
			continue
		}
		clock = max(clock, r.Timestamp.UnixMilli())
	}
	l.latest = clock
	for _, topic := range []string{workload.Merchants, workload.Lists} {
		for _, records := range l.round.read(topic + l.round.suffix) { // what a log has lost counts no more
			for _, r := range records {
				if err := loop.Apply(applied(r)); err != nil {
					l.round.kit.Fatal(err)
				}
				l.latest = max(l.latest, r.Timestamp.UnixMilli())
			}
		}
	}
	return loop, clock, poison
}

// applied returns a record as the model takes it.
func applied(r *kgo.Record) record.Record {
	return record.Record{
		Partition: state.Partition{Topic: r.Topic, ID: r.Partition}, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value,
	}
}

// read reads a topic to its end, without aborted records.
func (r *round) read(topic string) map[int32][]*kgo.Record {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	records, err := blackbox.ReadCommitted(ctx, r.kafka.Broker, topic, r.topics()[topic])
	if err != nil {
		r.kit.Fatal(err)
	}
	return records
}
