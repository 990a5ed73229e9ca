package redisstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/inspector"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// lostUntil returns for each series up to when reads of a device say that records were lost (0 for none). It compares a
// plain read, one with pending events and one from a snapshot.
func lostUntil(t *testing.T, s *Store, device string, series ...*state.Series) (lost []int64) {
	t.Helper()
	var reads []state.Read
	for _, of := range series {
		reads = append(reads, state.Read{Series: of, Entity: device, Last: 1 << 40})
	}
	held, err := s.Read(t.Context(), reads)
	if err != nil {
		t.Fatal(err)
	}
	pending, err := s.ReadOverlay(t.Context(), reads, new(state.Batch))
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := s.Snapshot(t.Context(), reads)
	if err != nil {
		t.Fatal(err)
	}
	copied := snapshot.Copy(reads)
	for i := range reads {
		all := []*int64{held[i].LostUntil, pending[i].LostUntil, snapshot.Read(&reads[i]).LostUntil, copied.Read(&reads[i]).LostUntil}
		if slices.ContainsFunc(all, func(l *int64) bool { return (l == nil) != (all[0] == nil) || l != nil && *l != *all[0] }) {
			t.Fatalf("series %s: the ways of reading report different losses: %v", series[i].ID, all)
		}
		if all[0] == nil {
			lost = append(lost, 0)
		} else {
			lost = append(lost, *all[0])
		}
	}
	return lost
}

// A drop removes what is damaged and keeps readable series. All readers then state what they lack, also after further
// events and a compaction.
func TestDrop(t *testing.T) {
	t.Parallel()
	known := func(tag uint32) *state.Series {
		i := slices.IndexFunc(allSeries, func(s *state.Series) bool { return s.Tag() == tag })
		if i < 0 {
			return nil
		}
		return allSeries[i]
	}
	key := func(s *Store) string { return string(keyspace.AppendKey(nil, s.tags[0], events.Group, []byte("d1"))) }
	// The body of a sum has its tile, but no number.
	badSum := string([]byte{byte(amount.Tag() >> 16), byte(amount.Tag() >> 8), byte(amount.Tag())}) + "\x01\x02"
	for name, test := range map[string]struct {
		damage func(ctx context.Context, c redis.UniversalClient, key string) error
		all    bool  // series are lost
		days   int64 // days whose events are still counted
		// keep is how long the operator's definitions keep the group, in ms.
		keep    int64
		forever bool // the key lives
	}{
		"a section": {func(ctx context.Context, c redis.UniversalClient, key string) error {
			return c.Append(ctx, key, badSum).Err()
		}, false, 1, day, false},
		"the end": {func(ctx context.Context, c redis.UniversalClient, key string) error {
			return c.Append(ctx, key, "\x01\x02\x03\x7f").Err()
		}, true, 1, events.GroupKeep, false},
		"all": {func(ctx context.Context, c redis.UniversalClient, key string) error {
			return c.Set(ctx, key, "\xff\xff\xff\xff", 0).Err()
		}, true, 0, events.GroupKeep, true},
		"foreign": {func(ctx context.Context, c redis.UniversalClient, key string) error {
			return errors.Join(c.Del(ctx, key).Err(), c.LPush(ctx, key, 1).Err())
		}, true, 0, events.GroupKeep, false},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, s *Store) {
				ctx := t.Context()
				start(t, s, transactions)
				w := s.newWriter()
				write := func(offset int64) {
					b := begin(t, s, transactions)
					fill(b, 0, event{offset: offset, device: "d1", user: "u", time: (100 + offset) * day})
					apply(t, w, b)
				}
				write(0)
				if lost := lostUntil(t, s, "d1", events, amount); !slices.Equal(lost, []int64{0, 0}) {
					t.Fatalf("sound state has the losses %v", lost)
				}
				if err := test.damage(ctx, s.redis, key(s)); err != nil {
					t.Fatal(err)
				}
				held, err := s.Inspect(ctx, events, "d1")
				if err != nil {
					t.Fatal(err)
				}
				kept := packed.Salvaged(held.Packed, known)
				if held.Type == "" && kept.Wrong == nil {
					t.Fatal("the damage was not found")
				}
				loss := packed.Loss{Tags: kept.Tags}
				record, err := s.Drop(ctx, held, kept.Kept, loss, test.keep)
				if err != nil || record.Newest() != 100*day || len(record.Held()) != 1 {
					t.Fatalf("the record is %+v, %v", record, err)
				}
				if _, err := s.Drop(ctx, held, kept.Kept, loss, test.keep); !errors.Is(err, inspector.ErrChanged) {
					t.Errorf("a second drop: got error %v, want that the key has changed", err)
				}
				// It lives as the definitions say, and no shorter than before.
				if ttl := s.redis.TTL(ctx, key(s)).Val(); (ttl == -1) != test.forever || !test.forever && ttl < 9*24*time.Hour {
					t.Errorf("the key expires after %v, want at least 9 days, or never: %v", ttl, test.forever)
				}
				want := []int64{0, 100 * day}
				if test.all {
					want[0] = 100 * day
				}
				for i := range int64(40) { // one on each day
					if lost := lostUntil(t, s, "d1", events, amount); i*day < events.GroupKeep && !slices.Equal(lost, want) {
						t.Fatalf("after %d events the losses are %v, want %v", i, lost, want)
					}
					write(1 + i)
				}
				if lost := lostUntil(t, s, "d1", events, amount); !slices.Equal(lost, []int64{0, 0}) {
					t.Errorf("the losses are %v, although they would no longer be kept", lost)
				}
				counted, err := s.Read(ctx, []state.Read{
					{Series: events, Entity: "d1", First: 100, Last: 100}, {Series: events, Entity: "d1", First: 135, Last: 140}})
				if err != nil || int64(len(counted[0].Buckets)) > test.days || len(counted[1].Buckets) != 6 || len(w.candidates) != 0 {
					t.Errorf("counted are %+v, %v", counted, err)
				}
				held, _ = s.Inspect(ctx, events, "d1")
				if len(held.Packed) > 1500 {
					t.Errorf("%d bytes were not compacted", len(held.Packed))
				}
			})
		})
	}
}
