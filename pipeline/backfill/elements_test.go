package backfill

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// The events of a row's elements are applied as far as they are before the cut, and none of a row with one that cannot be
// used.
func TestRowsOfSeveralEvents(t *testing.T) {
	r := defined.Registry(t, `
streams: {line: {topic: orders, each: items, timestamp: items.at, fields: {user: string, cents: {type: int, path: items.cents}}}}
features:
  big: COUNT(lifetime, line, user, where='cents * 3 > 30')
`)
	path := filepath.Join(t.TempDir(), "a.ndjson")
	if err := os.WriteFile(path, []byte(`{"user":"a","items":[{"at":900,"cents":11},{"at":901,"cents":1},{"at":1001,"cents":12},{"at":999,"cents":13}]}
{"user":"b","items":[]}
{"user":"c","items":[{"at":900,"cents":11},{"at":200000000000000,"cents":1}]}
{"user":"d","items":[{"at":1000,"cents":11}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cut := state.Cut{Topic: "orders", Until: 1000}
	f, err := ReadFile(t.Context(), Input{Name: path, Stream: r.Streams[0]}, r, &cut)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Rows, f.Events, f.Before, f.Earliest, f.Latest, f.Unusable); got != "4 6 3 900 999 1" {
		t.Errorf("rows, events, events before the cut, their earliest and latest time, unusable rows: %s, want 4 6 3 900 999 1", got)
	}
	all := map[*state.Series]bool{}
	for _, s := range r.Series {
		all[s] = true
	}
	fill := r.FillOf(all)
	fill.Cut = &cut
	rows, err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rows.close()
	a := &applying{FromFiles: &FromFiles{Cut: cut}, batch: state.Batch{Ranges: make([]state.PartitionRange, 1)}}
	mapper := r.NewArchiveMapper(fill, r.Streams[0])
	for n := range f.Rows {
		if err := rows.next(); err != nil {
			t.Fatal(err)
		}
		events, timestamp := firstEvents(rows, mapper, nil, n)
		a.row(mapper, events, timestamp, n)
	}
	counts := map[string]int64{}
	for _, u := range a.batch.Updates {
		for _, m := range a.batch.Mutations[u.From:u.To] {
			counts[string(u.Entity)] += max(1, m.Num)
		}
	}
	if got := fmt.Sprint(counts); got != "map[a:2]" {
		t.Errorf("counted are %s, want 2 events of a", got)
	}
}
