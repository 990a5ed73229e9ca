package pipeline_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/state"
)

const apartDefinitions = `
streams:
  payment:
    topic: payments
    timestamp: at
    fields: {user: string}
    enrich: {service: s, topic: payments.enriched}
features:
  hour: COUNT(1h, payment, user)
  month: COUNT(30d, payment, user)
services:
  s: [hour, month]
`

// timed is a payment in a partition, at a moment in ms.
func timed(p int, user string, at int64) kafka.Message {
	return kafka.Message{
		Topic: "payments", Key: []byte{byte(p)}, Time: time.UnixMilli(at), Value: fmt.Appendf(nil, `{"at":%d,"user":"%s"}`, at, user),
	}
}

// hour is an answer of that feature.
type hour struct {
	Value    int
	Status   string
	From, To int64
}

// hours returns the answers that were written for the events of a partition.
func (b *bench) hours(p int) (answers []hour) {
	b.t.Helper()
	for _, m := range b.output(enrichedTopic, partitions)[p] {
		var e struct{ Features struct{ Hour hour } }
		if err := json.Unmarshal(m.Value, &e); err != nil {
			b.t.Fatal(err)
		}
		answers = append(answers, e.Features.Hour)
	}
	return answers
}

// While records of one partition come that are days older than those of another, state is pruned by the newer ones. An older event
// has the right value, or it is said to be incomplete.
func TestEnrichedEventsOfOldRecords(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, apartDefinitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.config.Workers, b.config.MaxEvents = 1, 7 // a key is compacted several times
	now := time.Now().UnixMilli()
	b.run()
	sent, others := 0, 0
	write := func() (incomplete int) {
		var more []kafka.Message
		for range 50 {
			more = append(more, timed(0, "of the past", now-(240*time.Hour).Milliseconds()+int64(sent)))
			sent++
		}
		b.write(more...)
		b.committed(others + sent)
		for i, is := range b.hours(0) {
			switch {
			case is.Status == "INCOMPLETE":
				incomplete++
			case is.Status != "PRESENT" && is.Status != "LATER_EVENTS" || is.Value != i+1:
				t.Fatalf("event %d has %d payments and is %s", i, is.Value, is.Status)
			}
		}
		return incomplete
	}
	if n := write(); n > 0 {
		t.Errorf("%d events are incomplete although there are no newer ones", n)
	}
	others++
	b.write(timed(1, "of the present", now))
	b.committed(others + sent)
	testkit.Eventually(t, time.Minute, "incomplete answers", func() (bool, string) { return write() > 0, "none" })
}

// An enriched event that may count later events of another partition, since that is further ahead, says so.
func TestEnrichedEventsAfterLaterOnes(t *testing.T) {
	t.Parallel()
	definitions := strings.Replace(apartDefinitions, "COUNT(1h, payment, user)", "COUNT(1h, payment, user, tile=1h)", 1)
	b := newBenchOf(t, definitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.run()
	hour := time.Now().Add(-time.Hour).Truncate(time.Hour)
	at := func(p, minute int) kafka.Message {
		return timed(p, "u", hour.Add(time.Duration(minute)*time.Minute).UnixMilli())
	}
	for i, next := range []struct {
		kafka.Message
		want string
	}{
		{at(0, 10), "PRESENT"}, {at(0, 40), "PRESENT"}, {at(1, 20), "LATER_EVENTS"}, {at(1, 31), "PRESENT"}, {at(2, 29), "LATER_EVENTS"}, {at(2, 41), "PRESENT"},
		{at(2, 4), "LATER_EVENTS"},
	} {
		p := int(next.Key[0])
		b.write(next.Message)
		b.committed(i + 1)
		answers := b.hours(p)
		if is := answers[len(answers)-1]; is.Status != next.want || is.Value != i+1 {
			t.Errorf("event %d has %+v, want %d %s", i, is, i+1, next.want)
		}
	}
}

// While partitions catch up that are days apart, the events of each are written as they would have been in the present: they are
// read in step, also by several processes.
func TestEnrichWhileCatchingUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]catchUp{
		"one process":     {processes: 1, maxEvents: 7},
		"three processes": {processes: 3, maxEvents: 7},
		"batches of days": {processes: 1, maxEvents: 20_000, refused: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}

// catchUp is how enriched events catch up.
type catchUp struct {
	processes int
	maxEvents int // of a batch
	refused   int // how often the broker refuses the first events of a partition
}

func (test catchUp) run(t *testing.T) {
	b := newBenchOf(t, apartDefinitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.config.MaxEvents, b.config.Patience = test.maxEvents, time.Hour // it takes longer than a history is used, also on a slow machine
	b.config.Workers = partitions
	now := time.Now()
	begin := now.Add(-40 * time.Hour)
	var sent []kafka.Message
	pay := func(p int, since time.Time, every time.Duration) {
		for at := since; at.Before(now); at = at.Add(every) {
			sent = append(sent, timed(p, "user of "+strconv.Itoa(p), at.UnixMilli()))
		}
	}
	pay(0, begin, 30*time.Second)
	if test.refused == 0 {
		pay(1, now.Add(-time.Hour), 2*time.Second)
	} else {
		pay(1, begin, 30*time.Second)
	}
	pay(2, begin, 8*time.Hour)
	b.write(sent...)
	unfetched := b.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "payments", Err: kerr.LeaderNotAvailable, Count: -1})
	var all []*pipeline.Processor
	for range test.processes {
		b.run()
		all = append(all, b.processor)
	}
	for _, p := range all {
		testkit.Eventually(t, time.Minute, "an even share", func() (bool, string) {
			n := p.Stats().Assigned
			return n == int64(partitions/test.processes), fmt.Sprint(n)
		})
	}
	if test.refused > 0 {
		refusals := b.broker.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce}, Topic: enrichedTopic, Partitions: []int32{0}, Err: kerr.NotEnoughReplicas, Count: test.refused,
		})
		defer refusals.Remove()
	}
	unfetched.Remove()
	b.committed(len(sent))
	for p := range partitions {
		own := slices.DeleteFunc(slices.Clone(sent), func(m kafka.Message) bool { return m.Key[0] != byte(p) })
		answers := b.hours(p)
		if len(answers) != len(own) {
			t.Fatalf("%d of %d events of partition %d are written", len(answers), len(own), p)
		}
		for i, is := range answers {
			want := 0
			for _, m := range own[:i+1] {
				if m.Time.UnixMilli() >= is.From {
					want++
				}
			}
			if is.Status != "PRESENT" || is.Value != want || is.To-is.From < (59*time.Minute).Milliseconds() {
				t.Fatalf("event %d of partition %d has %+v, want %d", i, p, is, want)
			}
		}
	}
}

// The progress of a partition passes a marker of a transaction also while the record after it is held back: other processes would
// take it for one that is further behind.
func TestHeldBackAfterMarker(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, apartDefinitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.config.Patience = time.Hour
	b.broker.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: enrichedTopic, Partitions: []int32{1}, Err: kerr.NotEnoughReplicas, Count: -1,
	})
	now := time.Now()
	first := timed(0, "u", now.Add(-240*time.Hour).UnixMilli())
	producer, err := kgo.NewClient(kgo.SeedBrokers(b.broker.ListenAddrs()...), kgo.TransactionalID("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, producer, "payments", first)
	if err := producer.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	b.write(timed(0, "u", now.Add(-100*time.Hour).UnixMilli()), timed(1, "u", now.Add(-240*time.Hour).UnixMilli()))
	b.run()
	testkit.Eventually(t, time.Minute, "the record that is held back is the next one", func() (bool, string) {
		is := state.Lowest(b.progress()[0])
		return is == 2, fmt.Sprint("progress ", is)
	})
}
