package redisstore

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/value"
)

// boundDefinitions have more sets than fit into a key even when squeezed, and windows of very many tiles.
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

// No key becomes longer than 1 MiB, for any events of an entity. Beyond that the oldest tiles of the longest series are
// dropped, and reads of those say so.
func TestNoKeyBecomesLongerThanAMebibyte(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		const batches, size, now = 8, 700, 19_700 * day
		ctx := context.Background()
		r := defined.Registry(t, boundDefinitions())
		partition := state.Partition{Topic: "tx"}
		begin := testkit.FirstPlacement(partition, s.Shards(), 0)
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
			t.Errorf("the longest key had %d bytes, want between 512 KiB and 1 MiB", longest)
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
			t.Error("nothing was cut off, so nothing was tested")
		}
	})
}

// crowd are users of one device: about half a megabyte of members, in whatever order they come.
const crowd = 7000

func crowded(n int) string { return fmt.Sprintf("%060d", n) }

// metBy are the members of a crowd whom u1 has met at a device.
var metBy = &state.Series{ID: "metby", Group: "pairs", Parent: "devic", By: []string{"device", "user"}, Measure: state.Distinct, Type: value.String,
	Tile: day, Keep: 8 * day, GroupKeep: 9 * day, ParentKeep: 9 * day, KeyBytes: 500 << 10}

// crowdBatch is a batch of one partition with n events of the device d1, whose users are drawn from
// the crowd, and met by u1 if so wanted.
func crowdBatch(t *testing.T, s *Store, p state.Partition, random *rand.Rand, n int, met bool) (*state.Batch, []event) {
	t.Helper()
	b := begin(t, s, p)
	b.EveryShard = true
	list := make([]event, n)
	for i := range list {
		list[i] = event{
			offset: b.Ranges[0].To + int64(i), device: "d1", user: crowded(random.IntN(crowd)),
			time: 100 * day, cents: random.Int64N(1000),
		}
	}
	b.Series, b.Now = []*state.Series{events, amount, users, metBy}, 100*day
	for _, e := range list {
		b.Update(0, e.offset, []byte(e.device))
		b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
		b.Add(state.Mutation{Series: amount, Tile: 100, Num: e.cents})
		b.Add(state.Mutation{Series: users, Tile: 100, Text: &state.Text{Member: []byte(e.user)}})
		if met {
			b.Update(0, e.offset, []byte("d1|u1"))
			b.Add(state.Mutation{Series: metBy, Tile: 100, Text: &state.Text{Member: []byte(e.user)}})
		}
	}
	b.Ranges[0].To += int64(n)
	return b, list
}

// wantCrowd fails unless exactly the events are in the state of d1, and of u1 at it if so wanted.
func wantCrowd(t *testing.T, s *Store, list []event, met bool) {
	t.Helper()
	var reads []state.Read
	for _, series := range []*state.Series{events, amount, users} {
		reads = append(reads, state.Read{Series: series, Entity: "d1", First: 100, Last: 100})
	}
	if met {
		reads = append(reads, state.Read{Series: metBy, Entity: "d1|u1", First: 100, Last: 100})
	}
	got, err := s.Read(t.Context(), reads)
	if err != nil {
		t.Fatal(err)
	}
	sum, all := int64(0), map[string]bool{}
	for _, e := range list {
		sum += e.cents
		all[e.user] = true
	}
	for i, want := range []int64{int64(len(list)), sum} {
		if b := got[i].Buckets; len(b) != 1 || b[0].Value.Num != want {
			t.Errorf("%s is %+v, want %d", reads[i].Series.ID, b, want)
		}
	}
	for i, want := 2, slices.Sorted(maps.Keys(all)); i < len(got); i++ {
		if members := slices.Sorted(slices.Values(got[i].Members)); !slices.Equal(members, want) {
			t.Errorf("%s has %d members, want %d, or others", reads[i].Series.ID, len(members), len(want))
		}
	}
}

// Many writers append to one entity, each through a partition of its own, and each replaces what it has compacted only
// with its next batch. The key still stays below 1 MiB, and so does the key of a child.
func TestManyWritersKeepTheBound(t *testing.T) {
	t.Parallel()
	for name, met := range map[string]bool{"one key": false, "with a child": true} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, s *Store) {
				const writers, rounds = 8, 6
				random := rand.New(rand.NewPCG(7, 8))
				var all []event
				var each []*writer
				var partitions []state.Partition
				for id := range int32(writers) {
					partitions = append(partitions, state.Partition{Topic: "tx", ID: id})
					each = append(each, s.newWriter())
				}
				start(t, s, partitions...)
				longest := map[string]int64{deviceKey(s, "d1"): 0}
				if met {
					longest[childKey(s, metBy, "d1|u1")] = 0
				}
				for round := range rounds {
					for i, w := range each {
						b, list := crowdBatch(t, s, partitions[i], random, 1800, met)
						all = append(all, list...)
						apply(t, w, b)
						for key, before := range longest {
							length := s.redis.StrLen(t.Context(), key).Val()
							if longest[key] = max(before, length); length > 1<<20 {
								t.Fatalf("round %d: after the batch of writer %d %s has %d bytes", round, i, key, length)
							}
						}
					}
				}
				wantCrowd(t, s, all, met)
				for key, length := range longest {
					if length < 600<<10 {
						t.Errorf("%s had at most %d bytes, so nothing was tested", key, length)
					}
				}
			})
		})
	}
}
