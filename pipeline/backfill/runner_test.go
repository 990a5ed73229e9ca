package backfill

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// A partition may be moved between two turns. Records that were fetched before are not read: those in between would be
// skipped.
func TestRecordsOfAnOldPosition(t *testing.T) {
	broker := kafkatest.Embedded(t, map[string]int{"payments": 1})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	writer := kafka.Writer{Addr: kafka.TCP(broker.ListenAddrs()...), Topic: "payments", Transport: transport, RequiredAcks: kafka.RequireAll}
	defer writer.Close()
	if err := writer.WriteMessages(t.Context(), make([]kafka.Message, 3)...); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		moved bool
		next  int64
	}{{false, 3}, {true, 0}} {
		poller := fetch.NewPoller(fetch.PollerConfig{Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...)})
		defer poller.Close()
		j := &job{Partition: state.Partition{Topic: "payments"}, steps: []step{{from: 10, to: 20}}} // nothing is mapped
		r := &runner{
			Backfiller: New(Config{MaxEvents: 10, MaxBytes: 1 << 10}), poller: poller, batch: &batch{},
			jobs: map[state.Partition]*job{j.Partition: j},
		}
		poller.Add(j.Topic, j.ID, 0)
		part, err := poller.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.part = part
		r.decoder.Reset(part)
		if c.moved {
			poller.Seek(j.Topic, j.ID, 0)
		}
		if r.take(t.Context()); j.next != c.next || r.part != nil {
			t.Errorf("moved: %v: the next record is %d, want %d; records are kept: %v", c.moved, j.next, c.next, r.part != nil)
		}
	}
}

// noSchemas is a registry that does not answer.
type noSchemas struct{}

var errNoSchema = errors.New("the registry does not answer")

func (noSchemas) Supply(context.Context, *record.MissingSchema) error { return errNoSchema }

// A record whose schema is not available leaves its partition alone for a while. It does not keep the turn, for which
// other fills wait, and what was mapped before it is written.
func TestTurnsEndWithoutASchema(t *testing.T) {
	registry := defined.Registry(t, `
streams: {payment: {topic: payments, timestamp: at, format: avro, fields: {user: string}}}
features: {payments: "COUNT(lifetime, payment, user)"}
`)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		servers := &noted{}
		j := &job{Partition: state.Partition{Topic: "payments"}, steps: []step{{to: 10}}, progress: make([]state.Position, 1), next: 3}
		r := &runner{
			Backfiller: New(Config{Rate: 1, Schemas: noSchemas{}}), writer: servers, poller: fetch.NewPoller(fetch.PollerConfig{}),
			batch: &batch{}, spare: &batch{}, wrote: make(chan *batch, 1), fill: &state.Fill{}, mapper: registry.NewFillMapper(&state.Fill{}),
			jobs: map[state.Partition]*job{j.Partition: j}, rest: map[state.Partition]time.Time{}, report: reporter{log: slog.New(slog.DiscardHandler)},
		}
		defer r.poller.Close()
		start, mapped := time.Now(), true
		r.turn(ctx, func() { mapped = r.mapRecord(ctx, j, &fetch.Record{Offset: 3, Value: []byte{0, 0, 0, 0, 1}}) })
		if took := time.Since(start); mapped || took > 0 || len(servers.written) != 1 {
			t.Errorf("mapped: %v; the turn takes %v, and %q was written; want none, and that the batch before the record is", mapped, took, servers.written)
		}
		if r.jobs[j.Partition] != nil || !r.rest[j.Partition].After(start) {
			t.Errorf("the job goes on: %v; the partition is left alone until %v", r.jobs[j.Partition] != nil, r.rest[j.Partition])
		}
	})
}

// The offsets of a cut are those of one log. Of another log with the same name, as after the topic was created again, every
// record counts, and so is filled.
func TestFillOverACutOfAnotherLog(t *testing.T) {
	broker := kafkatest.Embedded(t, map[string]int{"payments": 1})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	for of, want := range map[string][]state.OffsetRange{"this log": nil, "another log": {{From: 0, To: 1}}} {
		k := keepingSome(t, "a")
		back := New(Config{Store: k.store, Transport: transport, Brokers: broker.ListenAddrs()})
		poller := fetch.NewPoller(fetch.PollerConfig{Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...)})
		defer poller.Close()
		logs, err := poller.Logs(t.Context(), []state.Partition{k.partition})
		if err != nil || logs[0].Err != nil {
			t.Fatal(err, logs[0].Err)
		}
		cut := state.Cut{Topic: "payments", Until: newest, Ends: "0:5", Log: "another"}
		if of == "this log" {
			cut.Log = logs[0].ID.Tag()
		}
		if err := k.files(cut, past, "a").Register(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.take("a") // from offset 1 on
		fills, pending, _ := k.over(cut, "a")
		if len(fills) != 1 || len(pending) > 0 {
			t.Fatalf("a cut of %s: got the fills %v, pending %v; want one fill", of, fills, pending)
		}
		b, err := Bind(t.Context(), k.store, lifetimes(t, "a"))
		if err != nil {
			t.Fatal(err)
		}
		r := newRunner(back, Work{Registry: b.Registry}, fills[0], nil)
		defer r.close()
		if err := r.begin(t.Context(), []state.Partition{k.partition}); err != nil {
			t.Fatal(err)
		}
		found, err := k.store.Fillings(t.Context(), fills[0], []state.Partition{k.partition})
		if err != nil {
			t.Fatal(err)
		}
		for shard := range found[0] {
			if got := found[0][shard].Left(); !slices.Equal(got, want) || found[0][shard].Since != state.MinTime {
				t.Errorf("a cut of %s: shard %d lacks %v since %d, want %v of all", of, shard, got, found[0][shard].Since, want)
			}
		}
	}
}

// A fill reads no log that live records would not be applied from: one of an older leader, or another one of the name.
func TestOnlyTheLogOfLiveRecordsIsFilledFrom(t *testing.T) {
	is, other := state.LogID{Cluster: "c", Topic: "is"}, state.LogID{Cluster: "c", Topic: "other"}
	k := keepingSome(t, "a")
	plan := k.take("a", "b")
	at := k.partition.WithPlan(plan.Version)
	from, err := k.store.Progress(t.Context(), []state.Partition{at})
	if err != nil {
		t.Fatal(err)
	}
	placement := state.Placement{Partition: at, From: from[0], Log: is, Partitions: 1}
	for range from[0] {
		placement.To = append(placement.To, state.Position{Offset: 10, Epoch: 9, Log: is.Tag()})
	}
	if placed, err := k.store.Place(t.Context(), placement); err != nil || placed != len(from[0]) {
		t.Fatalf("placed %d, error %v", placed, err)
	}
	r := &runner{Backfiller: New(Config{Store: k.store})}
	for name, test := range map[string]struct {
		log  fetch.Log
		want string // "" for none
	}{
		"the leader":                     {fetch.Log{ID: is, LeaderEpoch: 9}, ""},
		"a later leader":                 {fetch.Log{ID: is, LeaderEpoch: 10}, ""},
		"leaders are not reported":       {fetch.Log{ID: is, LeaderEpoch: -1}, ""},
		"an older leader":                {fetch.Log{ID: is, LeaderEpoch: 8}, "payments/0: the brokers name a leader of epoch 8, and it was applied under epoch 9"},
		"another log":                    {fetch.Log{ID: other, LeaderEpoch: 9}, (&fetch.OtherLogError{Topic: "payments", Was: is, Is: other}).Error()},
		"the log could not be asked for": {fetch.Log{ID: is, LeaderEpoch: 8, Err: errNoSchema}, errNoSchema.Error()},
	} {
		logs := []fetch.Log{test.log}
		if err := r.trust(t.Context(), []state.Partition{k.partition}, logs); err != nil {
			t.Fatal(err)
		}
		if got := logs[0].Err; (got == nil) != (test.want == "") || got != nil && got.Error() != test.want {
			t.Errorf("%s: error %v, want %q", name, got, test.want)
		}
	}
}
