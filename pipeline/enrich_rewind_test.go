package pipeline_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// After the store went back in time, partitions are read again in step, and nothing is pruned by what had been applied before: events
// that are written again are as complete as at first.
func TestEnrichAfterTheStoreWentBack(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, apartDefinitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.config.MaxEvents, b.config.Patience, b.config.Workers = 7, time.Hour, 1
	server := redistest.New(t, redistest.Options{AOF: true})
	b.useRedis(server)
	now := time.Now()
	begin := now.Add(-240 * time.Hour)
	sent := make([][]kafka.Message, partitions)
	pay := func(from, until time.Time) (all int) {
		for p, every := range []time.Duration{10 * time.Minute, 10 * time.Minute, 12 * time.Hour} {
			n := len(sent[p])
			for at := from; at.Before(until); at = at.Add(every) {
				sent[p] = append(sent[p], timed(p, "user of "+strconv.Itoa(p), at.UnixMilli()))
			}
			b.write(sent[p][n:]...)
			all += len(sent[p])
		}
		return all
	}
	kept := pay(begin, begin.Add(24*time.Hour))
	b.run()
	b.committed(kept)
	old := server.SaveCopy()
	all := pay(begin.Add(24*time.Hour), now)
	b.committed(all)
	server.RestoreCopy(old)
	answers := make([][]hour, partitions)
	testkit.Eventually(t, time.Minute, "events written again", func() (bool, string) {
		n := 0
		for p := range partitions {
			answers[p] = b.hours(p)
			n += len(answers[p])
		}
		return n >= 2*all-kept, fmt.Sprint(n)
	})
	for p, own := range sent {
		again := answers[p][len(own):]
		for i, m := range own[len(own)-len(again):] {
			is, want := again[i], 0
			for _, before := range own[:slices.IndexFunc(own, func(n kafka.Message) bool { return n.Time.Equal(m.Time) })+1] {
				if before.Time.UnixMilli() >= is.From {
					want++
				}
			}
			if is.Status != "PRESENT" || is.Value != want {
				t.Fatalf("event %d of partition %d that is written again has %+v, want %d", i, p, is, want)
			}
		}
	}
}
