package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/value"
)

// A log has the events that were appended, without those that its horizon and its cap have dropped.
func TestLogIsKeptAndTrimmed(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w := s.newWriter()
		random := rand.New(rand.NewPCG(8, 9))
		number := state.NewColumn(1, value.Int, 0)
		text := state.NewColumn(2, value.String, 0)
		var appended []int64 // times
		for i := range int64(300) {
			at := 100*day + i*day/10 - random.Int64N(day/10)
			record := state.AppendLogTime(nil, at)
			record = state.AppendLogColumn(record, number, value.Value{Type: value.Int, Num: i})
			long := make([]byte, random.IntN(300)) // also records whose length needs two bytes
			record = state.AppendLogColumn(record, text, value.Value{Type: value.String, Str: long})
			b := begin(t, s, transactions)
			b.Now, b.Series = at, allSeries
			b.Ranges[0].To = i + 1
			b.Update(0, i, []byte("d1"))
			b.Add(state.Mutation{Series: history, Tile: at, Text: &state.Text{Member: state.AppendLogRecord(nil, record)}})
			apply(t, w, b)
			appended = append(appended, at)

			windowStates, err := s.Read(context.Background(), []state.Read{{Series: history, Entity: "d1"}})
			if err != nil {
				t.Fatal(err)
			}
			first := int64(-1)
			n := int64(0)
			err = windowStates[0].Log.Records(func(r state.LogRecord) bool {
				var v value.Value
				ok, err := r.Column(number, &v)
				if err != nil || !ok || first >= 0 && v.Num != first+n || r.Time != appended[v.Num] {
					t.Fatalf("after event %d: record %d is event %d at %d, error %v; want the events in order, each at its own time", i, n, v.Num, r.Time, err)
				}
				if first < 0 {
					first = v.Num
				}
				n++
				return true
			})
			if err != nil || first+n != i+1 {
				t.Fatalf("after event %d: the log holds events %d to %d, error %v; want it to end with the last one", i, first, first+n-1, err)
			}
			if n > int64(history.Max) {
				t.Fatalf("after event %d: the log holds %d events, want at most %d", i, n, history.Max)
			}
			cut, ok := windowStates[0].Log.CutOff()
			for _, gone := range appended[:first] {
				if gone >= at-8*day && (!ok || cut < gone) {
					t.Fatalf("after event %d: the log lacks an event at %d and is cut off up to %d, %v; want that event stated", i, gone, cut, ok)
				}
			}
		}
		if ttl := s.redis.TTL(context.Background(), string(keyspace.AppendKey(nil, s.tags[state.Shard(state.EntityHash([]byte("d1")), 2)], history.Group, []byte("d1")))).Val(); ttl <= 0 {
			t.Errorf("the log has a time to live of %v, want a positive one", ttl)
		}
	})
}

// A burst of events of one entity is one append; the cap keeps its last events.
func TestLogTakesBursts(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		b := begin(t, s, transactions)
		for i := range int64(1200) {
			b.Now, b.Ranges[0].To = 100*day, i+1
			b.Update(0, i, []byte("d1"))
			b.Add(state.Mutation{Series: history, Tile: 100 * day, Text: &state.Text{Member: state.AppendLogRecord(nil, state.AppendLogTime(nil, 100*day+i))}})
		}
		apply(t, s.newWriter(), b)
		windowStates, err := s.Read(context.Background(), []state.Read{{Series: history, Entity: "d1"}})
		if err != nil {
			t.Fatal(err)
		}
		var times []int64
		if err := windowStates[0].Log.Records(func(r state.LogRecord) bool { times = append(times, r.Time-100*day); return true }); err != nil {
			t.Fatal(err)
		}
		if want := countTo(1200)[1200-history.Max:]; !slices.Equal(times, want) {
			t.Errorf("the log holds %d events at %v, want the last %d, at %v", len(times), times, len(want), want)
		}
	})
}

// A log keeps the last events by time up to its cap, and states up to when others were dropped. The order and the
// batches of events do not matter, nor compactions in between; pending events are included.
func TestLogDropsByTime(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w, held := s.newWriter(), memory.NewKeyed(*s.secret.Load())
		random := rand.New(rand.NewPCG(12, 13))
		order := random.Perm(200)
		logged := func(b *state.Batch, offset int64, time int) {
			b.Now, b.Series = 100*day, allSeries
			b.Update(0, offset, []byte("d1"))
			record := state.AppendLogRecord(nil, state.AppendLogTime(nil, 100*day+int64(time)))
			b.Add(state.Mutation{Series: history, Tile: 100*day + int64(time), Text: &state.Text{Member: record}})
			b.Ranges[0].To = offset + 1
		}
		wanted := []state.Read{{Series: history, Entity: "d1"}}
		for done := 0; done < len(order); {
			b := begin(t, s, transactions)
			for range min(1+random.IntN(12), len(order)-done) {
				logged(b, int64(done), order[done])
				done++
			}
			apply(t, w, b)
			if err := held.Apply(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			pending := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
			soon := order[done:min(done+random.IntN(4), len(order))]
			for i, time := range soon {
				logged(pending, int64(done+i), time)
			}
			for what, from := range map[string]store.Reader{"Redis": s, "memory": held} {
				windowStates, err := from.Read(context.Background(), wanted)
				if err != nil {
					t.Fatal(err)
				}
				wantLog(t, fmt.Sprintf("%s after %d", what, done), windowStates[0].Log, order[:done])
				if windowStates, err = from.ReadOverlay(context.Background(), wanted, pending); err != nil {
					t.Fatal(err)
				}
				wantLog(t, fmt.Sprintf("%s after %d and %d pending", what, done, len(soon)), windowStates[0].Log, order[:done+len(soon)])
			}
		}
	})
}

// wantLog fails unless a log holds the last ones of some times of day 100.
func wantLog(t *testing.T, what string, log state.Log, times []int) {
	t.Helper()
	want := slices.Sorted(slices.Values(times))
	cut, isCut := int64(0), len(want) > history.Max
	if isCut {
		cut = 100*day + int64(want[len(want)-history.Max-1])
		want = want[len(want)-history.Max:]
	}
	var got []int
	if err := log.Records(func(r state.LogRecord) bool { got = append(got, int(r.Time-100*day)); return true }); err != nil {
		t.Fatal(err)
	}
	if lost, ok := log.CutOff(); !slices.Equal(got, want) || ok != isCut || ok && lost != cut {
		t.Fatalf("%s: the log holds %v and is cut off up to %d, %v; want %v, %d, %v", what, got, lost, ok, want, cut, isCut)
	}
}

func countTo(n int64) (list []int64) {
	for i := range n {
		list = append(list, i)
	}
	return list
}
