package backfill

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// The ranges that shards lack are split at each other's ends, so that no shard gets a record twice.
func TestStepsOf(t *testing.T) {
	got := stepsOf([]state.Filling{
		testkit.ParseFilling(t, "7;0-30,40-60", "10:-1:log"),
		testkit.ParseFilling(t, "7;0-33", "0:-1:log"),
		testkit.ParseFilling(t, "7;0-30,40-@5", "30:-1:log"), // the open range is left out
		testkit.ParseFilling(t, "!", ""),
		testkit.ParseFilling(t, "", ""),
	})
	all := state.AllSlices
	want := []step{
		{0, 10, []state.SliceSet{all, 0, all, all, all}},
		{10, 30, []state.SliceSet{0, 0, all, all, all}},
		{30, 33, []state.SliceSet{all, 0, all, all, all}},
		{40, 60, []state.SliceSet{0, all, all, all, all}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("the steps differ (-want +got):\n%s", diff)
	}
}

// Slices of a shard that are ahead lack other ranges than the rest of it: where a plan left them, where another took
// them, and where the fill has them.
func TestStepsOfSlices(t *testing.T) {
	below := func(slice int) state.SliceSet { return 1<<slice - 1 }
	for name, c := range map[string]struct {
		ranges, at string
		want       []step
	}{
		"the plan took slices ahead": {"7;0-20+30/5", "0:-1:log", []step{
			{0, 20, []state.SliceSet{0}}, {20, 30, []state.SliceSet{^below(5)}},
		}},
		"the plan before left slices ahead": {"7;0-10,20+30/5-40", "10:-1:log", []step{
			{20, 30, []state.SliceSet{below(5)}}, {30, 40, []state.SliceSet{0}},
		}},
		"left and taken while slices were ahead": {"7;0-10+30/5,20+30/5-40", "0:-1:log", []step{
			{0, 10, []state.SliceSet{0}}, {10, 20, []state.SliceSet{^below(5)}}, {20, 30, []state.SliceSet{0}}, {30, 40, []state.SliceSet{0}},
		}},
		"left at once": {"7;0-10+30/5,10+30/5-20+30/5", "0:-1:log", []step{
			{0, 10, []state.SliceSet{0}}, {10, 20, []state.SliceSet{0}}, {20, 30, []state.SliceSet{^below(5)}},
		}},
		"the fill has slices ahead": {"7;0-50", "10+20/8:-1:log", []step{
			{10, 20, []state.SliceSet{below(8)}}, {20, 50, []state.SliceSet{0}},
		}},
		"all of them": {"7;0-30+40/5", "20+35/8:-1:log", []step{
			{20, 30, []state.SliceSet{below(8)}}, {35, 40, []state.SliceSet{^below(5)}},
		}},
		"nothing is left": {"7;0-30+40/5", "40:-1:log", nil},
	} {
		got := stepsOf([]state.Filling{testkit.ParseFilling(t, c.ranges, c.at)})
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%s: the steps differ (-want +got):\n%s", name, diff)
		}
	}
}

// A partition is filled from the first needed record, and claims to cover no more.
func TestStart(t *testing.T) {
	window, forever := features.FillReach{Reach: 1000}, features.FillReach{Forever: true}
	for name, c := range map[string]struct {
		reach       features.FillReach
		logStart    int64
		logEnd      int64
		first       fetch.Dated
		from, since int64
	}{
		"in the log":               {window, 5, 100, fetch.Dated{Offset: 70, Timestamp: 9003}, 70, 9000},
		"all of the log":           {window, 0, 100, fetch.Dated{Offset: 0, Timestamp: 9500}, 0, state.MinTime},
		"retention has removed it": {window, 5, 100, fetch.Dated{Offset: 5, Timestamp: 9500}, 5, 9501},
		"all records are older":    {window, 5, 100, fetch.Dated{Offset: -1}, beyondAll, 9000},
		"forever":                  {forever, 0, 100, fetch.Dated{Offset: 0, Timestamp: 4}, 0, state.MinTime},
		"emptied by retention":     {window, 100, 100, fetch.Dated{Offset: -1, Timestamp: -1}, 100, 10_051},
		"forever, but emptied":     {forever, 100, 100, fetch.Dated{Offset: -1, Timestamp: -1}, 100, 10_051},
		"never written, a window":  {window, 0, 0, fetch.Dated{Offset: -1, Timestamp: -1}, beyondAll, 9000},
		"never written":            {forever, 0, 0, fetch.Dated{Offset: -1, Timestamp: -1}, 0, state.MinTime},
		"forever, but retention":   {forever, 5, 100, fetch.Dated{Offset: 5, Timestamp: 8000}, 5, 8001},
	} {
		if from, since := start(&fetch.Log{Start: c.logStart, End: c.logEnd}, c.first, matters(c.reach, 10_000), 10_050); from != c.from || since != c.since {
			t.Errorf("%s: got offset %d, since %d; want offset %d, since %d", name, from, since, c.from, c.since)
		}
	}
}

// clockStore is a store whose newest record has a timestamp.
type clockStore struct {
	store.Store
	newest int64
}

func (s clockStore) Clock(context.Context) (int64, error) { return s.newest, nil }

// A record from the future does not move the start of a fill.
func TestNewestRecord(t *testing.T) {
	present := time.Now().UnixMilli()
	if newest, err := newestRecord(t.Context(), clockStore{newest: present - 1000}); newest != present-1000 || err != nil {
		t.Errorf("got %d, %v; want %d", newest, err, present-1000)
	}
	if newest, err := newestRecord(t.Context(), clockStore{newest: present + state.MaxAhead.Milliseconds()}); newest > time.Now().UnixMilli() || newest < present || err != nil {
		t.Errorf("got %d, %v; want the present", newest, err)
	}
}
