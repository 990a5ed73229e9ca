package redisstore

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// boundDefinitions have more sets than fit into a key however much they are squeezed, and windows
// of very many tiles.
func boundDefinitions() string {
	var d strings.Builder
	d.WriteString(`
streams:
  tx:
    topic: tx
    timestamp: t
    fields: {device: string, user: string, n: int}
features:
  burst: COUNT(10s, tx, device)
  burst_sum: SUM(10s, tx, n, device)
  burst_users: COUNT_DISTINCT(10s, tx, device, user)
  burst_by_user: COUNT(1m, tx, device, per=user)
  newest: LAST(30d, tx, user, device, tile=1h)
  met: COUNT_DISTINCT(30d, tx, device, user, method=last_seen)
  before: LAST_K(30d, tx, user, device, k=5)
`)
	for i := range 70 {
		fmt.Fprintf(&d, "  users_%d: COUNT_DISTINCT(30d, tx, device, user, where='n %% 70 != %d')\n", i, i)
	}
	return d.String()
}

// No key becomes longer than 1 MiB, whatever an entity meets. Beyond that the oldest tiles of the
// longest series are dropped, and reads of those say so.
func TestNoKeyBecomesLongerThanAMebibyte(t *testing.T) {
	onEach(t, 1, func(t *testing.T, s *Store) {
		const batches, size, now = 8, 700, 19_700 * day
		ctx := context.Background()
		r, err := definition.Parse("definitions.yaml", []byte(boundDefinitions()))
		if err != nil {
			t.Fatal(err)
		}
		partition := state.Partition{Topic: "tx"}
		begin := state.Begin(partition, s.Shards(), 0)
		if _, err := s.Place(ctx, begin); err != nil {
			t.Fatal(err)
		}
		mapper, w, random := r.NewMapper(), s.newWriter(), rand.New(rand.NewPCG(5, 6))
		var times []int64
		longest, cutKeys := int64(0), 0
		offset, progress := int64(0), begin.To
		for range batches {
			b := &state.Batch{Ranges: []state.PartitionRange{{Partition: partition, Progress: progress}}, Series: r.Series, Now: now, EveryShard: true}
			for range size {
				at := now - random.Int64N(30*day)
				if random.IntN(2) == 0 {
					at = now - random.Int64N(3_900_000)
				}
				times = append(times, at)
				rec := record.Record{Partition: partition, Offset: offset, Timestamp: now, Value: fmt.Appendf(nil,
					`{"t":%d,"device":"d","user":"%0250d","n":%d}`, at, offset, math.MaxInt64-offset)}
				if _, err := mapper.Map(&rec, 0, b); err != nil {
					t.Fatal(err)
				}
				offset++
			}
			b.Ranges[0].To = offset
			apply(t, w, b)
			cutKeys += b.CutKeys
			progress = b.Ranges[0].Progress
			for _, series := range r.Series {
				key := string(keyspace.AppendKey(nil, s.tags[0], series.Group, []byte("d")))
				longest = max(longest, s.redis.StrLen(ctx, key).Val())
			}
		}
		if longest > 1<<20 || longest < 1<<19 {
			t.Errorf("the longest key had %d bytes, want at the most 1 MiB, and no less than half of that", longest)
		}
		cut := 0
		for _, series := range r.Series {
			read := state.Read{Series: series, Entity: "d", First: series.Horizon(now), Last: series.TileOf(now)}
			got, err := s.Read(ctx, []state.Read{read})
			if err != nil {
				t.Fatal(err)
			}
			if got[0].LostUntil != nil {
				cut++
				continue
			}
			if series.Measure != state.CountEvents || series.Layout() != state.Tiles {
				continue
			}
			want, counted := int64(0), int64(0)
			for _, at := range times {
				if tile := series.TileOf(at); tile >= read.First && tile <= read.Last {
					want++
				}
			}
			for _, bucket := range got[0].Buckets {
				counted += bucket.Value.Num
			}
			if counted != want || want == 0 {
				t.Errorf("%d events are counted, want %d", counted, want)
			}
		}
		t.Logf("the longest key had %d KiB, %d of %d series were cut, by %d compactions", longest>>10, cut, len(r.Series), cutKeys)
		if cut == 0 || cutKeys == 0 {
			t.Error("nothing was cut off: nothing is tried")
		}
	})
}
