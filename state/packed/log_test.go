package packed

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// logged is a record as the tests write it.
type logged struct {
	time, number int64
}

var numberColumn = state.NewColumn(1, value.Int, 0)

func (e logged) mutation(s *state.Series) *state.Mutation {
	record := state.AppendLogColumn(state.AppendLogTime(nil, e.time), numberColumn, value.Value{Type: value.Int, Num: e.number})
	return &state.Mutation{Series: s, Tile: e.time, Text: &state.Text{Member: state.AppendLogRecord(nil, record)}}
}

// content returns the content of a log, and the time up to which its cap has dropped records.
func content(t rapid.TB, l State) string {
	log := l.Read(&state.Read{}).Log
	var list []logged
	err := log.Records(func(r state.LogRecord) bool {
		var v value.Value
		if _, err := r.Column(numberColumn, &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, logged{r.Time, v.Num})
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	cut, ok := log.CutOff()
	return fmt.Sprint(list, cut, ok)
}

// lastOf returns what a log must keep of events: the last ones by time, and by arrival within one time.
func lastOf(events []logged, most int) string {
	sorted := slices.SortedStableFunc(slices.Values(events), func(a, b logged) int { return cmp.Compare(a.time, b.time) })
	cut, ok := state.Log(state.LogHeader).CutOff()
	if n := len(sorted) - most; n > 0 {
		cut, ok = sorted[n-1].time, true
		sorted = sorted[n:]
	}
	return fmt.Sprint(append([]logged(nil), sorted...), cut, ok)
}

// A log keeps the last events by time, and the time up to which others were dropped. The order of events does not
// matter, nor how they are applied, packed, compacted and read in between.
func TestLogKeepsLatestEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &state.Series{ID: "log", Measure: state.Record, Tile: 1, Max: rapid.IntRange(1, 8).Draw(t, "max")}
		known := func(uint32) *state.Series { return s }
		times := rapid.SliceOfN(rapid.Int64Range(-20, 20), 1, 40).Draw(t, "times")
		var events []logged
		var packed []byte
		applied := New(s)
		for i, time := range times {
			e := logged{time, int64(i)}
			events = append(events, e)
			applied.Apply(e.mutation(s))
			var packer Packer
			packer.Begin(s)
			packer.Add(e.mutation(s))
			packed = packer.End(packed)
			switch rapid.IntRange(0, 5).Draw(t, "then") {
			case 0:
				var err error
				if packed, err = new(Compactor).Compact(nil, packed, known, none, 0, Nonce{1}); err != nil {
					t.Fatal(err)
				}
			case 1:
				applied.Read(&state.Read{})
			case 2:
				again := New(s)
				if err := again.Merge(applied.Append(nil)); err != nil {
					t.Fatal(err)
				}
				applied = again
			}
			merged := New(s)
			if err := Sections(packed, func(_ uint32, body []byte) error { return merged.Merge(body) }); err != nil {
				t.Fatal(err)
			}
			want := lastOf(events, s.Max)
			if got := content(t, merged); got != want {
				t.Fatalf("the packed log is %s, want %s", got, want)
			}
			if i == len(times)-1 || rapid.Bool().Draw(t, "look") {
				if got := content(t, applied); got != want {
					t.Fatalf("the log of applied events is %s, want %s", got, want)
				}
			}
		}
	})
}

// An event older than a dropped one stays out even if there is room again because others were pruned or the cap was
// raised.
func TestLogDropsEventsBeforeItsCutOff(t *testing.T) {
	narrow := &state.Series{ID: "log", Measure: state.Record, Tile: 1, Max: 2}
	wide := &state.Series{ID: "log", Measure: state.Record, Tile: 1, Max: 10}
	fill := func(l State, times ...int64) {
		for i, time := range times {
			l.Apply(logged{time, int64(i)}.mutation(narrow))
		}
	}
	pruned := New(narrow)
	fill(pruned, 10, 20, 30, 40)
	pruned.Prune(35)
	fill(pruned, 15)
	if got, want := content(t, pruned), "[{40 3}] 20 true"; got != want {
		t.Errorf("the pruned log is %s, want %s", got, want)
	}
	held := New(narrow)
	fill(held, 10, 20, 30, 40)
	for name, merge := range map[string][][]byte{
		"the cut first": {held.Append(nil), logged{15, 7}.mutation(wide).Member, logged{20, 8}.mutation(wide).Member},
		"the cut last":  {logged{15, 7}.mutation(wide).Member, logged{25, 8}.mutation(wide).Member, held.Append(nil)},
	} {
		raised := New(wide)
		for _, packed := range merge {
			if err := raised.Merge(packed); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]string{"the cut first": "[{20 8} {30 2} {40 3}] 20 true", "the cut last": "[{25 8} {30 2} {40 3}] 20 true"}[name]
		if got := content(t, raised); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
