package redisstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// A read for which a total suffices gets one bucket, except for a sum of floats, and when a pending
// event is to be added.
func TestTotalsAreOneBucket(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := t.Context()
		start(t, s, transactions)
		w := s.newWriter()
		for n := range int64(4) { // the last is outside of the window
			b := begin(t, s, transactions)
			fill(b, 0, event{offset: n, device: "d1", user: "u", time: (100 + n) * day, cents: 10 * (n + 1)})
			apply(t, w, b)
		}
		var reads []state.Read
		for _, of := range []*state.Series{events, amount, smallest, biggest, weight} {
			reads = append(reads, state.Read{Series: of, Entity: "d1", First: 100, Last: 102, Total: true})
		}
		for i := range reads { // the same windows, tile by tile
			tiles := reads[i]
			tiles.Total = false
			reads = append(reads, tiles)
		}
		numbers := func(windowStates []state.WindowState) (text []string) {
			for _, s := range windowStates {
				line := ""
				for _, b := range s.Buckets {
					line += string(b.Value.AppendText(nil)) + " "
				}
				text = append(text, line)
			}
			return text
		}
		got, err := s.Read(ctx, reads)
		if err != nil {
			t.Fatal(err)
		}
		tiles := []string{"1 1 1 ", "0.1 0.2 0.3 ", "0.1 0.2 0.3 ", "2.5 5 7.5 ", "2.5 5 7.5 "}
		if want := append([]string{"3 ", "0.6 ", "0.1 ", "7.5 ", "2.5 5 7.5 "}, tiles...); !slices.Equal(numbers(got), want) {
			t.Errorf("totals, then tiles: got %q, want %q", numbers(got), want)
		}
		got, err = s.ReadOverlay(ctx, reads, new(state.Batch))
		if err != nil {
			t.Fatal(err)
		}
		if want := append(slices.Clone(tiles), tiles...); !slices.Equal(numbers(got), want) {
			t.Errorf("with pending events: got %q, want %q", numbers(got), want)
		}
	})
}

// A reused receiver answers like a new one, both for other series and for the same ones of another
// entity.
func TestReceiversAreReused(t *testing.T) {
	t.Parallel()
	packedDays := func(days ...int64) (data []byte) {
		var packer packed.Packer
		for _, d := range days {
			batch := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
			fill(batch, 0, event{device: "d", user: fmt.Sprint("u", d), time: d * day, cents: d})
			for i := range batch.Mutations {
				if s := batch.Mutations[i].Series; s.Group == events.Group && s != history && s != ids {
					packer.Begin(s)
					packer.Add(&batch.Mutations[i])
					data = packer.End(data)
				}
			}
		}
		return data
	}
	used := new(receiver)
	look := func(r *receiver, data []byte, reads []state.Read) string {
		l := lookup{group: events.Group, reading: reading{keys: []string{"key"}, one: redis.NewStringCmd(t.Context(), "get", "key")}}
		l.one.SetVal(string(data))
		for i := range reads {
			l.reads = append(l.reads, i)
		}
		*r = receiver{groups: r.groups, reads: reads, windowStates: make([]state.WindowState, len(reads))}
		r.receive(&l)
		for i := range r.windowStates {
			slices.Sort(r.windowStates[i].Members)
		}
		return fmt.Sprintf("%+v", r.windowStates)
	}
	reads := func(last int64, total bool, series ...*state.Series) (list []state.Read) {
		for _, s := range series {
			list = append(list, state.Read{Series: s, Entity: "d", First: 100, Last: last, Total: total})
		}
		return list
	}
	one, other, broken := packedDays(100, 101, 102), packedDays(101, 105), append(packedDays(100), 1)
	for n, question := range []struct {
		data  []byte
		reads []state.Read
	}{
		{one, reads(102, true, events, amount, users)},
		{other, reads(105, true, events, amount, users)},
		{one, reads(101, true, amount, events, users)},
		{one, reads(101, false, amount, events, users)},
		{one, slices.Concat(reads(101, true, events), reads(102, true, events), reads(102, false, events))},
		{broken, reads(102, true, events, users)},
		{one, reads(102, true, events, users)},
		{other, reads(102, false, users, approx)},
	} {
		if got, want := look(used, question.data, question.reads), look(new(receiver), question.data, question.reads); got != want {
			t.Errorf("question %d: got %s, want %s", n, got, want)
		}
	}
}
