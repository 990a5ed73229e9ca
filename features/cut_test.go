package features_test

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// Each event is written to a series over a cut either from the log or from files, in tiles and in
// exact logs, and to others from the log alone.
func TestEventsAboutACut(t *testing.T) {
	r := defined.Registry(t, `
streams: {payment: {topic: payments, timestamp: at, fields: {user: string}}}
features:
  tiled: COUNT(30d, payment, user, tile=1h)
  exact: COUNT(30d, payment, user, tile=exact)
`)
	const cut = 1_000_000_000_000
	known := state.Known{
		History: &state.History{}, Now: cut,
		Archives: []*state.Archive{state.NewArchive(state.Archive{Cut: state.Cut{Topic: "payments", Until: cut}}, nil)},
	}
	bound := state.Bind(r.Plan(), &known)
	keeping := r.Keeping(bound, nil)
	fill := state.NewFills(bound, nil)[0]
	if reach := keeping.FillReach(fill, "payments"); reach.After != cut-reach.Future {
		t.Errorf("the log is read from %d on", reach.After)
	}
	stream := r.Streams[0]
	for _, at := range []int64{cut - 1, cut, cut + 1} {
		text := fmt.Appendf(nil, `{"at": %d, "user": "u"}`, at)
		events, err := record.NewJSONDecoder(r.Streams).Decode(&record.Record{Partition: state.Partition{Topic: "payments"}, Timestamp: at, Value: text})
		if err != nil {
			t.Fatal(err)
		}
		mapped := func(fromFile bool) int {
			m := keeping.NewFillMapper(fill)
			if fromFile {
				m = keeping.NewArchiveMapper(fill, stream)
			}
			b := state.Batch{Ranges: make([]state.PartitionRange, 1)}
			if _, err := m.MapEvents(events, 0, at, 0, &b); err != nil {
				t.Fatal(err)
			}
			return len(b.Mutations)
		}
		want := 0
		if at >= cut {
			want = 2
		}
		if got := mapped(false); got != want {
			t.Errorf("an event of %d writes %d series from the log, want %d", at-cut, got, want)
		}
		if got := mapped(true); got != 2 {
			t.Errorf("an event of %d writes %d series from a file, want 2", at-cut, got)
		}
	}
}
