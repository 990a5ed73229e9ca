package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	redisstore "github.com/weir-stream/weir/store/redis"
)

const outageDefinitions = `
streams:
  payment:
    topic: payments
    timestamp: at
    fields: {user: string}
    max_future: 0s
    enrich: {service: risk, topic: payments.enriched}
features:
  paid: COUNT(2s, payment, user, tile=1s, keep=1s)
services:
  risk: [paid]
`

// While processors are down, time passes for Redis but not for the records. State that lives long enough is there when
// they return. If it may have expired, events that depend on it say so, until the lag is made up.
func TestEnrichAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slack time.Duration
		want  []string
	}{
		"state outlives it": {time.Minute, []string{`6,"status":"PRESENT"`, `7,"status":"PRESENT"`}},
		"state expires":     {0, []string{`1,"status":"INCOMPLETE"`, `2,"status":"INCOMPLETE"`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBenchOf(t, outageDefinitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
			b.store = redisstore.New(b.redis, testkit.Namespace(t), 2, redisstore.Slack(test.slack))
			b.config.Store = b.store
			b.run()
			b.awaitReady(b.processor) // the start of a processor may take as long as state lives
			began := time.Now()
			write := func(from, n int) {
				var records []kafka.Message
				for i := from; i < from+n; i++ {
					at := began.Add(time.Duration(i) * time.Millisecond)
					records = append(records, kafka.Message{Topic: "payments", Key: []byte{0}, Time: at,
						Value: fmt.Appendf(nil, `{"at":%d,"user":"u"}`, at.UnixMilli())})
				}
				b.write(records...)
			}
			write(0, 5)
			b.committed(5)
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			paid, _ := b.registry.Feature("paid")
			testkit.Eventually(t, time.Minute, "the outage to last as long as state lives", func() (bool, string) {
				held, err := b.store.Inspect(t.Context(), paid.Series[0], "u")
				return test.slack == 0 && len(held.Packed) == 0 || test.slack > 0 && time.Since(began) > 5*time.Second, fmt.Sprint(held, err)
			})
			write(5, 2)
			b.run()
			b.committed(7)
			// Once the lag is made up, later events lack nothing.
			now := time.Now()
			b.write(kafka.Message{Topic: "payments", Key: []byte{0}, Time: now, Value: fmt.Appendf(nil, `{"at":%d,"user":"u"}`, now.UnixMilli())})
			b.committed(8)
			var got []string
			for _, m := range b.output(enrichedTopic, partitions)[0] {
				_, value, _ := strings.Cut(string(m.Value), `"paid":{"value":`)
				value, _, _ = strings.Cut(value, `,"from"`)
				got = append(got, value)
			}
			want := slices.Concat([]string{`1,"status":"PRESENT"`, `2,"status":"PRESENT"`, `3,"status":"PRESENT"`, `4,"status":"PRESENT"`, `5,"status":"PRESENT"`},
				test.want, []string{`1,"status":"PRESENT"`})
			if !slices.Equal(got, want) {
				t.Errorf("enriched events:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}
