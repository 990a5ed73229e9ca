package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

const elementDefinitions = `
streams:
  payment:
    topic: payments
    each: items
    match: items.type == "payment"
    timestamp: at
    fields: {user: {type: string, path: items.user}, cents: {type: int, path: items.cents, lenient: true}}
features:
  paid: SUM(1d, payment, cents, user)
  payments: COUNT(lifetime, payment, user)
`

// All elements of a record are applied, once, or none if one of them cannot be used.
func TestElementsAreApplied(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, elementDefinitions, map[string]int{"payments": partitions, deadLetters: 1})
	const each, all = 6, 600
	batch := func(i int, more string) kafka.Message {
		items := []string{`null`, `{"type":"refund","user":"u0","cents":1}`}
		for n := i; n < i+each; n++ {
			items = append(items, fmt.Sprintf(`{"type":"payment","user":"u%d","cents":"%d"}`, n%7, n))
		}
		return kafka.Message{
			Topic: "payments", Key: []byte{byte(i / each % partitions)}, Time: time.UnixMilli(at),
			Value: fmt.Appendf(nil, `{"at":%d,"items":[%s%s]}`, at, strings.Join(items, ","), more),
		}
	}
	var records []kafka.Message
	for i := 0; i < all; i += each {
		records = append(records, batch(i, ""))
	}
	poison := batch(0, `,{"type":"payment","user":"u1","cents":"much"}`)
	b.config.MaxEvents = 7
	b.run()
	b.write(records[:50]...)
	b.write(poison)
	b.expect(50 * each)
	b.committed(51)
	if s := b.processor.Stats(); s.Dead != 1 {
		t.Errorf("stats %+v, want 1 dead letter", s)
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.write(records[50:]...)
	b.expect(all)
	b.committed(len(records) + 1)
	if s := b.processor.Stats(); s.Dead != 0 {
		t.Errorf("stats %+v, want no dead letter after the restart", s)
	}
}
