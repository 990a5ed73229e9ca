package query

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

// Equal reads are made once for each entity. Those of other windows of the same series, of other entities or of another
// question are not equal.
func TestEqualReadsAreMadeOnce(t *testing.T) {
	r := defined.Features(t, "week: SUM(7d, tx, amount, user)", "month: SUM(30d, tx, amount, user)", "mean: AVG(7d, tx, amount, user)", "same: AVG(7d, tx, amount, user, keep=1d)")
	const at, day = int64(1_532_520_000_000), 86_400_000
	var reading Reading
	for _, entities := range [][]string{{"a", "b", "a"}, {"c"}} {
		reading.Reset(at)
		var frames []int
		for _, name := range []string{"week", "month", "mean", "same"} {
			frames = append(frames, reading.Frame(r.Features[slices.IndexFunc(r.Features, func(f *features.Feature) bool { return f.Name == name })], at))
		}
		var want []string
		for i, entity := range entities {
			for _, frame := range frames {
				reading.WantFramed(frame, entity)
			}
			if slices.Index(entities, entity) == i {
				want = append(want, entity+" sum 7", entity+" sum 30", entity+" sum 7", entity+" count_values 7")
			}
		}
		var got []string
		for _, read := range reading.Reads() {
			got = append(got, fmt.Sprint(read.Entity, " ", read.Series.Measure, " ", (read.Last-read.First+1)*read.Series.Tile/day))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the reads are\n%q, want\n%q", got, want)
		}
	}
}
