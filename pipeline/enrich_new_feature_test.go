package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

const newFeatureDefinitions = `
streams:
  payment:
    topic: payments
    timestamp: at
    fields: {user: string, shop: string}
    max_future: 0s
    enrich: {service: risk, topic: payments.enriched}
features:
  old: COUNT(1d, payment, user)
services:
  risk: [old]
`

// countsHistories counts reads of the history.
type countsHistories struct {
	store.Store
	read *atomic.Int64
}

func (s countsHistories) History(ctx context.Context) (*state.History, error) {
	s.read.Add(1)
	return s.Store.History(ctx)
}

// Features of an event that are younger than their windows are incomplete, as in answers, until the window begins after
// them. The history is not read for each event.
func TestEnrichWithYoungFeatures(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, newFeatureDefinitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	reads := new(atomic.Int64)
	b.config.Store = countsHistories{b.store, reads}
	b.config.MaxEvents = 1
	write := func(seconds ...int64) {
		for _, s := range seconds {
			b.write(kafka.Message{Topic: "payments", Key: []byte{0}, Time: time.UnixMilli(at + s*1000),
				Value: fmt.Appendf(nil, `{"at":%d,"user":"u","shop":"s"}`, at+s*1000)})
		}
	}
	b.run()
	write(0)
	b.committed(1)
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	grown := strings.Replace(newFeatureDefinitions, "services:", `  young: COUNT(5s, payment, user, tile=1s)
  both: {expr: young + old}
  listed: COUNT(1d, payment, SET(5s, payment, user, shop, tile=1s))
services:`, 1)
	b.config.Registry = defined.Registry(t, strings.Replace(grown, "[old]", "[old, young, both, listed]", 1))
	b.run()
	b.awaitDefinitions(b.config.Registry) // for all partitions, which the history must know for features to be complete
	write(1, 2, 10)
	b.committed(4)
	var many []int64
	for i := range int64(200) {
		many = append(many, 11+i)
	}
	before, began, opened := reads.Load(), time.Now(), b.redis.PoolStats().Misses
	write(many...)
	b.committed(4 + len(many))
	opened = b.redis.PoolStats().Misses - opened // each new connection supersedes the history
	if n, most := reads.Load()-before, 2+int64(time.Since(began)/store.MaxHistoryAge)+int64(opened); n > most {
		t.Errorf("the history was read %d times for %d batches in %s, want at most %d", n, len(many), time.Since(began), most)
	}
	var got []string
	for _, m := range b.output(enrichedTopic, partitions)[0][:4] {
		got = append(got, statuses(string(m.Value)))
	}
	want := []string{
		"old 1 PRESENT exact",
		"old 2 PRESENT exact, young 1 INCOMPLETE, both 3 INCOMPLETE, listed 1 INCOMPLETE",
		"old 3 PRESENT exact, young 2 INCOMPLETE, both 5 INCOMPLETE, listed 2 INCOMPLETE",
		"old 4 PRESENT exact, young 1 PRESENT exact, both 5 PRESENT exact, listed 3 INCOMPLETE",
	}
	if !slices.Equal(got, want) {
		t.Errorf("enriched events:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// statuses are the statuses of an enriched event's features.
func statuses(event string) string {
	var all []string
	_, event, _ = strings.Cut(event, `"features":{`)
	for _, f := range strings.Split(event, "},") {
		name, rest, _ := strings.Cut(f, `":{"value":`)
		value, rest, _ := strings.Cut(rest, `,"status":"`)
		status, rest, _ := strings.Cut(rest, `"`)
		if text := strings.Trim(name, `"`) + " " + value + " " + status; strings.Contains(rest, `"exact":true`) {
			all = append(all, text+" exact")
		} else {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// Enriched events count in wider tiles of the same definitions while narrower ones are filled, and in those from then
// on, although the plan remains the same.
func TestEnrichWhileNarrowerTilesAreFilled(t *testing.T) {
	t.Parallel()
	days := strings.Replace(strings.Replace(newFeatureDefinitions, "old: COUNT(1d, payment, user)", "days: COUNT(7d, payment, user, tile=1d)", 1), "[old]", "[days]", 1)
	b := newBenchOf(t, days, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.config.BindInterval, b.config.Backfill, b.config.BackfillRate = 20*time.Millisecond, true, 1
	const day = 24 * 60 * 60 * 1000
	midnight, n := at-at%day, 0
	write := func(ms int64) {
		n++
		b.write(kafka.Message{Topic: "payments", Key: []byte{0}, Time: time.UnixMilli(ms), Value: fmt.Appendf(nil, `{"at":%d,"user":"u","shop":"s"}`, ms)})
		b.committed(n)
	}
	b.run()
	write(midnight)
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	hours := strings.Replace(days, "services:", "  hours: COUNT(1d, payment, user, tile=1h)\nservices:", 1)
	b.config.Registry = defined.Registry(t, strings.Replace(hours, "[days]", "[days, hours]", 1))
	b.run()
	b.awaitDefinitions(b.config.Registry)
	testkit.Eventually(t, time.Minute, "the event of another hour, a day before, does not count", func() (bool, string) {
		write(midnight + day + day/2)
		events := b.output(enrichedTopic, partitions)[0]
		got := statuses(string(events[len(events)-1].Value))
		return got == fmt.Sprintf("days %d PRESENT exact, hours %d PRESENT exact", n, n-1), got
	})
}
