package pipeline_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
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

// hours returns the answers of `hour` that were written for the events of a partition.
func (b *bench) hours(p int) (answers []struct {
	Value  int
	Status string
}) {
	b.t.Helper()
	for _, m := range b.output(enrichedTopic, partitions)[p] {
		var e struct {
			Features struct {
				Hour struct {
					Value  int
					Status string
				}
			}
		}
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
	b.write(timed(1, "of the present", now))
	b.committed(1)
	sent, incomplete := 0, 0
	testkit.Eventually(t, time.Minute, "incomplete answers", func() (bool, string) {
		var more []kafka.Message
		for range 50 {
			more = append(more, timed(0, "of the past", now-(240*time.Hour).Milliseconds()+int64(sent)))
			sent++
		}
		b.write(more...)
		b.committed(1 + sent)
		incomplete = 0
		for i, is := range b.hours(0) {
			switch {
			case is.Status == "INCOMPLETE":
				incomplete++
			case is.Status != "PRESENT" || is.Value != i+1:
				t.Fatalf("event %d has %d payments and is %s", i, is.Value, is.Status)
			}
		}
		return incomplete > 0, "none"
	})
	if complete := sent - incomplete; complete == 0 {
		t.Error("not even the first ones are complete")
	}
}
