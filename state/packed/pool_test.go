package packed

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
)

// A reused state holds nothing from its earlier use, and its reuse does not change earlier answers.
func TestPoolGivesEmptyStates(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	var pool pool
	reused := 0
	for _, s := range everySeries() {
		used := pool.take(s)
		for range 50 {
			used.Apply(randomMutation(random, s))
		}
		if err := used.Merge(used.Append(nil)); err != nil {
			t.Fatal(err)
		}
		answered := used.Read(&state.Read{Series: s, First: math.MinInt64, Last: math.MaxInt64})
		said := fmt.Sprintf("%+v", answered)
		used.Prune(s.TileOf(110 * day))
		pool.put(s, used)
		again, fresh := pool.take(s), New(s)
		if again != used {
			continue // it is recreated each time
		}
		reused++
		if diff := cmp.Diff(look(s, fresh), look(s, again)); diff != "" {
			t.Fatalf("%s of %s, used before (-new +used):\n%s", s.Measure, s.Type, diff)
		}
		for range 50 {
			mutation := randomMutation(random, s)
			again.Apply(mutation)
			fresh.Apply(mutation)
		}
		again.Prune(s.TileOf(105 * day))
		fresh.Prune(s.TileOf(105 * day))
		if diff := cmp.Diff(look(s, fresh), look(s, again)); diff != "" || !bytes.Equal(fresh.Append(nil), again.Append(nil)) {
			t.Errorf("%s of %s, used again (-new +used):\n%s", s.Measure, s.Type, diff)
		}
		if got := fmt.Sprintf("%+v", answered); got != said {
			t.Errorf("%s of %s: an earlier answer was\n%s\nand has become\n%s", s.Measure, s.Type, said, got)
		}
		if pool.take(s) == again {
			t.Errorf("%s of %s is given out twice", s.Measure, s.Type)
		}
	}
	if reused == 0 {
		t.Error("no state was reused")
	}
}
