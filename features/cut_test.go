package features_test

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// Each event is written to a series over a cut from either the log or the files, in tiles and in exact logs, and to
// other series from the log alone.
func TestEventsBeforeAndAfterACut(t *testing.T) {
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
	if reach := keeping.FillReach(fill, "payments"); reach.After != cut {
		t.Errorf("the log is read from the moment %d, want the cut", reach.After)
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

// For a cut by offsets, the offset of a record decides which side writes it, independent of its time. Records of
// another log, and events that are not written yet, are on the log's side.
func TestEventsBeforeAndAfterACutByOffsets(t *testing.T) {
	r := defined.Registry(t, `
streams: {payment: {topic: payments, timestamp: at, fields: {user: string}}}
features:
  tiled: COUNT(30d, payment, user, tile=1h)
  exact: COUNT(30d, payment, user, tile=exact)
`)
	const moment = 1_000_000_000_000
	known := state.Known{
		History: &state.History{}, Now: moment,
		Archives: []*state.Archive{state.NewArchive(state.Archive{Cut: state.Cut{Topic: "payments", Until: moment, Ends: "1:10", Log: "here"}}, nil)},
	}
	bound := state.Bind(r.Plan(), &known)
	keeping := r.Keeping(bound, nil)
	fill := state.NewFills(bound, nil)[0]
	if reach := keeping.FillReach(fill, "payments"); reach.After != 0 {
		t.Errorf("the log is read from the moment %d, want it to be read from offsets", reach.After)
	}
	for _, at := range []int64{moment - 1, moment + 1} {
		for _, test := range []struct {
			partition int32
			offset    int64
			log       string
			want      int
		}{{1, 9, "here", 0}, {1, 10, "here", 2}, {1, 9, "", 0}, {0, 0, "here", 2}, {1, 9, "another", 2}, {1, record.Unwritten, "", 2}} {
			b := state.Batch{Ranges: make([]state.PartitionRange, 1)}
			rec := &record.Record{
				Partition: state.Partition{Topic: "payments", ID: test.partition}, Offset: test.offset, Log: test.log,
				Timestamp: at, Value: fmt.Appendf(nil, `{"at": %d, "user": "u"}`, at),
			}
			if _, err := keeping.NewFillMapper(fill).Map(rec, 0, &b); err != nil {
				t.Fatal(err)
			}
			if got := len(b.Mutations); got != test.want {
				t.Errorf("offset %d of partition %d of log %q writes %d series, want %d", test.offset, test.partition, test.log, got, test.want)
			}
		}
	}
}
