package pipeline_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
)

// An event of an entity with damaged state is written without values of the features concerned, and the partition
// continues.
func TestEnrichFromDamagedState(t *testing.T) {
	t.Parallel()
	b := newEnrichBench(t)
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	ctx := t.Context()
	if err := b.store.Create(ctx); err != nil {
		t.Fatal(err)
	}
	// A shard without progress would be emptied.
	if _, err := b.store.Place(ctx, testkit.FirstPlacement(state.Partition{Topic: "other"}, b.store.Shards(), 0)); err != nil {
		t.Fatal(err)
	}
	paid, _ := b.registry.Feature("paid")
	held, err := b.store.Inspect(ctx, paid.Series[0], `u0\|0`) // a user of partition 0
	if err != nil {
		t.Fatal(err)
	}
	if err := b.redis.SAdd(ctx, held.Key, "not ours").Err(); err != nil {
		t.Fatal(err)
	}
	sent := purchases(6, 120)
	b.write(sent...)
	b.run()
	b.committed(120)
	damaged, written := 0, 0
	for _, messages := range b.output(enrichedTopic, partitions) {
		for _, m := range messages {
			written++
			value := string(m.Value)
			of := strings.Contains(value, `"user":"u0|0"`)
			if strings.Contains(value, `"paid":{"value":null,"status":"DAMAGED"`) != of ||
				strings.Contains(value, `"shop":"`) && strings.Contains(value, `"been_there":{"value":null,"status":"DAMAGED"`) != of {
				t.Errorf("unexpected enriched event %s", value)
			}
			damaged += strings.Count(value, `"DAMAGED"`)
		}
	}
	if n := count(t, metrics, "weir_enriched_damaged_total"); damaged == 0 || int(n) != damaged || written < 80 {
		t.Errorf("%d events were written with %d damaged values, of which %v were counted", written, damaged, n)
	}
	if n := count(t, metrics, "weir_refused_mutations_total"); n == 0 {
		t.Error("mutations that Redis refused were not counted")
	}
}
