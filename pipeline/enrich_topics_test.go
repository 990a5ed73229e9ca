package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit"
)

// If the topics have different numbers of partitions, keys determine the partition, and the events of each source
// partition stay in order there.
func TestEnrichIntoOtherPartitions(t *testing.T) {
	t.Parallel()
	const outs = 2
	b := newBenchOf(t, enrichedDefinitions, map[string]int{"payments": partitions, enrichedTopic: outs, deadLetters: 1})
	sent := purchases(10, 600)
	b.write(sent...)
	b.run()
	b.committed(600)
	want := b.wanted(sent)
	for out, messages := range b.output(enrichedTopic, outs) {
		for _, m := range messages {
			p := int(m.Key[0])
			if to := (&kafka.Murmur2Balancer{}).Balance(m, 0, 1); to != out {
				t.Fatalf("key %q is in partition %d, want %d", m.Key, out, to)
			}
			if len(want[p]) == 0 || string(m.Value) != want[p][0].value {
				t.Fatalf("partition %d continues with %s", p, m.Value)
			}
			want[p] = want[p][1:]
		}
	}
	for p := range want {
		if len(want[p]) > 0 {
			t.Errorf("%d events of partition %d were not written", len(want[p]), p)
		}
	}
}

// While one partition of their topic cannot be written, the events that go to another one are written once: their records
// are read again and again.
func TestEnrichedEventsBesideAPartitionThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	const outs = 2
	b := newBenchOf(t, enrichedDefinitions, map[string]int{"payments": partitions, enrichedTopic: outs, deadLetters: 1})
	fault := b.broker.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: enrichedTopic, Partitions: []int32{1}, Err: kerr.NotEnoughReplicas, Count: -1,
	})
	sent := purchases(10, 30)
	for i := range sent { // all of one partition, with keys of both
		sent[i].Key = []byte{byte(i * partitions)}
	}
	b.write(sent...)
	b.run()
	testkit.Eventually(t, 30*time.Second, "several tries", func() (bool, string) { return fault.Hits() >= 5, fmt.Sprint(fault.Hits()) })
	fault.Remove()
	b.committed(len(sent))
	times := map[string]int{}
	for out, messages := range b.output(enrichedTopic, outs) {
		if len(messages) == 0 {
			t.Errorf("partition %d has no events", out)
		}
		for _, m := range messages {
			times[header(m, "weir-source-offset")]++
		}
	}
	for offset, n := range times {
		if n > 1 {
			t.Errorf("the event at offset %s is written %d times, want once", offset, n)
		}
	}
}

// A record that two streams accept is written for each, with the features of its own service, even
// if both are written to one topic.
func TestEnrichTwoStreams(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, `
streams:
  payment:
    topic: payments
    timestamp: at
    fields: {user: string, cents: int}
    enrich: {service: s, topic: payments.enriched}
  great:
    topic: payments
    match: cents >= 100
    timestamp: at
    fields: {user: string, cents: int}
    enrich: {service: great, topic: payments.enriched}
features:
  payments: COUNT(lifetime, payment, user)
  greats: COUNT(lifetime, great, user)
services:
  s: [payments]
  great: [payments, greats]
`, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.run()
	for _, cents := range []int{99, 100} {
		m := payment(0)
		m.Value = fmt.Appendf(nil, `{"at":%d,"user":"u","cents":%d}`, at, cents)
		b.write(m)
	}
	b.committed(2)
	const all = `{"value":%d,"status":"PRESENT","from":null,"to":1532496076032,"exact":true}`
	var got []string
	for _, m := range b.output(enrichedTopic, partitions)[0] {
		_, features, _ := strings.Cut(string(m.Value), `,"features":`)
		got = append(got, header(m, "weir-stream")+" "+header(m, "weir-source-offset")+" "+features)
	}
	want := []string{
		`payment 0 {"payments":` + fmt.Sprintf(all, 1) + `}}`,
		`great 1 {"payments":` + fmt.Sprintf(all, 2) + `,"greats":` + fmt.Sprintf(all, 1) + `}}`,
		`payment 1 {"payments":` + fmt.Sprintf(all, 2) + `}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("enriched events:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A processor waits for a missing output topic, and says so.
func TestEnrichedTopicIsMissing(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, enrichedDefinitions, map[string]int{"payments": partitions, deadLetters: 1})
	b.run()
	testkit.Eventually(t, time.Minute, "readiness names the topic", func() (bool, string) {
		err := b.processor.Ready(context.Background())
		return err != nil && strings.Contains(err.Error(), `topic "payments.enriched": `), fmt.Sprint(err)
	})
}
