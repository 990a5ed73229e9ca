package serve

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

const timelineDefinitions = `
streams:
  payment: {topic: payments, timestamp: at, max_future: 0s, fields: {user: string, cents: int, shop: string}}
features:
  days: COUNT(7d, payment, user)
  hours: COUNT(1d, payment, user, keep=3d)
  minutes: COUNT(5h, payment, user)
  delayed: COUNT(2d, payment, user, delay=1d)
  month: COUNT(calendar month, payment, user)
  tumbling: COUNT(tumbling 6h, payment, user)
  third: COUNT(tumbling 1h, payment, user, tile=20m)
  thirds: COUNT(40m, payment, user, tile=20m)
  exact: COUNT(1d, payment, user, tile=exact, max=2000)
  bounds: COUNT(1d, payment, user, tile=exact, bounds='[)', max=2000)
  spent: SUM(7d, payment, cents, user)
  ever: COUNT(lifetime, payment, user)
  part: {expr: spent / days}
  last: LAST(7d, payment, shop, user)
  recent: COUNT(last 10, payment, user)
  seen: SEEN(7d, payment, user, shop)
  shops: COUNT_DISTINCT(7d, payment, user, shop)
  through: COUNT(7d, payment, SET(7d, payment, shop, user))
`

// timelineHandler serves a registry from a state.
func timelineHandler(t *testing.T, reader *fakeReader) http.Handler {
	t.Helper()
	r := defined.Registry(t, timelineDefinitions)
	return newHandler(reader, func(c *setup) { c.Registry = func() *features.Registry { return r } })
}

type timelineAnswer struct {
	At     int64
	Points []struct {
		Value  *float64
		Status string
		From   int64
		To     int64
		Exact  bool
		Oldest *int64
	}
}

func timelineOf(t *testing.T, h http.Handler, target string) (a timelineAnswer) {
	t.Helper()
	w := do(t, h, "GET", target, "")
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// Each point equals a plain loop over the events of its stretch. The stretches are contiguous up to the end of the
// window, none lies outside of it, and all are read in one round trip.
func TestTimelineIsWhatHappened(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	stored := memory.New()
	reader := &fakeReader{read: stored.Read, clock: noon.UnixMilli()}
	h := timelineHandler(t, reader)
	r := defined.Registry(t, timelineDefinitions)
	var times, cents []int64
	mapper := r.NewMapper()
	for i := range 1500 {
		at := noon.UnixMilli() - random.Int64N((9 * day).Milliseconds())
		if i%3 == 0 {
			at = noon.UnixMilli() - random.Int64N(day.Milliseconds()/8)
		}
		n := random.Int64N(500)
		times, cents = append(times, at), append(cents, n)
		record := record.Record{
			Partition: state.Partition{Topic: "payments"}, Offset: int64(i), Timestamp: at,
			Value: fmt.Appendf(nil, `{"at": %d, "user": "u1", "cents": %d, "shop": "s%d"}`, at, n, n),
		}
		var batch state.Batch
		if _, err := mapper.Map(&record, 0, &batch); err != nil {
			t.Fatal(err)
		}
		batch.Now = 0 // nothing is dropped
		if err := stored.Apply(t.Context(), &batch); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		points int
		to     time.Time
	}{
		{"days", 7, noon}, {"hours", 24, noon}, {"minutes", 60, noon}, {"month", 25, noon}, {"tumbling", 1, noon}, {"spent", 7, noon},
		{"third", 1, noon}, {"thirds", 2, noon}, // fewer tiles than an hour has
		{"exact", 48, noon}, {"bounds", 48, noon.Add(-time.Millisecond)},
		{"delayed", 2, noon.Add(-day / 2).Add(-time.Millisecond)}, // a tile that has ended is complete
	} {
		t.Run(test.name, func(t *testing.T) {
			var whole struct {
				Results []struct {
					Features map[string]struct{ From int64 }
				}
			}
			w := do(t, h, "GET", "/v1/features/"+test.name+"?user=u1", "")
			if err := json.Unmarshal(w.Body.Bytes(), &whole); err != nil {
				t.Fatal(err)
			}
			window := whole.Results[0].Features[test.name]
			reader.calls = nil
			a := timelineOf(t, h, "/v1/timeline/"+test.name+"?user=u1")
			if len(reader.calls) != 1 {
				t.Errorf("%d round trips, want 1", len(reader.calls))
			}
			if len(a.Points) != test.points {
				t.Fatalf("%d points, want %d", len(a.Points), test.points)
			}
			if a.At != noon.UnixMilli() || a.Points[0].From < window.From || a.Points[len(a.Points)-1].To != test.to.UnixMilli() {
				t.Errorf("at %d: from %d to %d, want from %d to %d", a.At, a.Points[0].From, a.Points[len(a.Points)-1].To, window.From, test.to.UnixMilli())
			}
			for i, point := range a.Points {
				if i > 0 && point.From != a.Points[i-1].To+1 {
					t.Errorf("point %d begins at %d, but the previous one ends at %d", i, point.From, a.Points[i-1].To)
				}
				var want float64
				for n, at := range times {
					switch {
					case at < point.From || at > point.To:
					case test.name == "spent":
						want += float64(cents[n])
					default:
						want++
					}
				}
				if point.Value == nil || *point.Value != want || !point.Exact {
					t.Errorf("point %d is %+v, want %v", i, point, want)
				}
			}
		})
	}
}

func TestTimelineOutsideMaxAge(t *testing.T) {
	h := timelineHandler(t, &fakeReader{clock: noon.UnixMilli()})
	w := do(t, h, "GET", fmt.Sprintf("/v1/timeline/days?user=u1&at=%d", noon.Add(-2*day).UnixMilli()), "")
	want := `{"at":1532347200000,"points":[{"value":null,"status":"OUTSIDE_MAX_AGE","from":1531785600000,"to":1532390399999,` +
		`"exact":false,"oldest":1532516400000}]}` + "\n"
	if diff := cmp.Diff(want, w.Body.String()); w.Code != http.StatusOK || diff != "" {
		t.Errorf("%d (-want +got):\n%s", w.Code, diff)
	}
	a := timelineOf(t, h, fmt.Sprintf("/v1/timeline/hours?user=u1&at=%d", noon.Add(-2*day).UnixMilli()))
	if len(a.Points) != 24 || a.Points[23].To != noon.Add(-2*day).Add(day/24).UnixMilli()-1 {
		t.Errorf("got %d points, the last ending at %d; want 24, up to max_age", len(a.Points), a.Points[len(a.Points)-1].To)
	}
}

func TestRefusedTimelines(t *testing.T) {
	h := timelineHandler(t, &fakeReader{})
	none := func(name string) string {
		return `{"error":{"code":"no_timeline","message":"feature \"` + name + `\" has no timeline: its value is not a number, or its window does ` +
			`not fall into stretches of time; ask for the feature itself","feature":"` + name + `"}}` + "\n"
	}
	for _, test := range []struct {
		target string
		status int
		want   string
	}{
		{"ever?user=u1", 400, none("ever")},
		{"part?user=u1", 400, none("part")},
		{"last?user=u1", 400, none("last")},
		{"recent?user=u1", 400, none("recent")},
		{"through?shop=s1", 400, none("through")},
		{"seen?user=u1&member=s1", 400, none("seen")},
		{
			"shops?user=u1&member=s1", 400,
			`{"error":{"code":"no_members","message":"the timeline of feature \"shops\" has no members: omit them","feature":"shops","key":"member"}}` + "\n",
		},
		{
			"days", 400,
			`{"error":{"code":"missing_key","message":"entity 0 has no key \"user\" (string), which feature \"days\" needs","feature":"days","key":"user","entity":0}}` + "\n",
		},
		{
			"day?user=u1", 404,
			`{"error":{"code":"unknown_feature","message":"there is no feature \"day\"; did you mean \"days\"?","feature":"day","nearest":"days"}}` + "\n",
		},
	} {
		w := do(t, h, "GET", "/v1/timeline/"+test.target, "")
		if diff := cmp.Diff(test.want, w.Body.String()); w.Code != test.status || diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", test.target, w.Code, diff)
		}
	}
}
