package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// arrival is a record that is applied some time after the first request for it.
type arrival struct {
	after time.Duration
	err   error

	began     time.Time
	looks     int
	partition state.Partition
	version   string // of the plan under which the record is looked for
	offset    int64
	entities  []string // of the last look's reads
}

func (a *arrival) applied(_ context.Context, p state.Partition, offset int64, reads []state.Read) (bool, error) {
	if a.looks == 0 {
		a.began = time.Now()
	}
	a.looks++
	a.partition, a.offset, a.entities = p, offset, nil
	a.partition, a.version = p.Itself(), p.Plan
	for _, r := range reads {
		a.entities = append(a.entities, r.Entity)
	}
	return time.Since(a.began) >= a.after, a.err
}

// waitingHandler serves definitions over the topic views; a question may take two seconds.
func waitingHandler(t testing.TB, a *arrival) http.Handler {
	t.Helper()
	r := defined.Registry(t, memberDefinitions)
	read := func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		return make([]state.WindowState, len(reads)), nil
	}
	return newHandler(&fakeReader{read: read}, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		if a != nil {
			c.Applied = a.applied
		}
	})
}

func TestWaiting(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name          string
		after         time.Duration
		timeout, want string
		took          time.Duration
		looks         int
	}{
		{"applied already", 0, ``, "true", 0, 1},
		{"applied soon", 5 * ms, ``, "true", 7 * ms, 4}, // at 0, 1, 3 and 7 ms
		{"looks are not more than 16 ms apart", 90 * ms, ``, "true", 95 * ms, 10},
		{"too late", time.Hour, ``, "false", 100 * ms, 10},
		{"too late for less", time.Hour, `, "timeout_ms": 10`, "false", 10 * ms, 4},
		{"no wait at all", 5 * ms, `, "timeout_ms": 0`, "false", 0, 1},
		{"no longer than half of the time", time.Hour, `, "timeout_ms": 60000`, "false", time.Second, 66},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &arrival{after: test.after}
				h := waitingHandler(t, a)
				began := time.Now()
				w := do(t, h, "POST", queryPath, `{"features": ["views"], "entities": [{"user": "u1"}, {"user": "u2"}],
					"wait_for": {"topic": "views", "partition": 3, "offset": 1234`+test.timeout+`}}`)
				if w.Code != 200 || !strings.Contains(w.Body.String(), `"waited":{"applied":`+test.want+`},"results":[{`) {
					t.Errorf("got %d %s, want 200 and applied %s", w.Code, w.Body, test.want)
				}
				if took := time.Since(began); took != test.took || a.looks != test.looks {
					t.Errorf("took %v and %d reads of the progress, want %v and %d", took, a.looks, test.took, test.looks)
				}
				want := state.Partition{Topic: "views", ID: 3}
				if diff := cmp.Diff([]string{"u1", "u2"}, a.entities); diff != "" || a.partition != want || a.version == "" || a.offset != 1234 {
					t.Errorf("looked for %v of %v (-want +got):\n%s", a.offset, a.partition, diff)
				}
			})
		})
	}
}

// first is a namespace whose first record, in a replay of history, is applied before the second look of the question.
type first struct {
	fakeReader
	record int64 // its timestamp
	plan   *state.Plan
	looks  int
}

func (f *first) Clock(context.Context) (int64, error) {
	if f.looks < 2 {
		return 0, nil
	}
	return f.record, nil
}

func (f *first) applied(context.Context, state.Partition, int64, []state.Read) (bool, error) {
	f.looks++
	return f.looks >= 2, nil
}

func (f *first) history(context.Context) (*state.History, error) {
	if f.looks < 2 {
		return &state.History{}, nil
	}
	return &state.History{
		PlanEpochs: []state.PlanEpoch{{Topic: "views", Version: f.plan.Version, Last: state.MaxTime}},
		Plans:      map[string]*state.Plan{f.plan.Version: f.plan},
	}, nil
}

// A question that waits for the first record of a namespace is answered by the clock and the history after that record,
// not before.
func TestWaitingForTheFirstRecord(t *testing.T) {
	const wait = `"waited":{"applied":true}`
	for target, want := range map[string]string{
		"/v1/features/views": `{"at":944092800000,` + wait + `,"results":[{"entity":{"user":"u1"},"features":{"views":` +
			`{"value":0,"status":"NOT_FOUND","from":944010000000,"to":944096399999,"exact":true}}}]}`,
		"/v1/timeline/views": `{"at":944092800000,` + wait + `,"points":[{"value":0,"status":"NOT_FOUND",`,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := defined.Registry(t, memberDefinitions)
			f := &first{record: 944092800000, plan: r.Plan()}
			h := newHandler(f, func(c *setup) {
				c.Registry = func() *features.Registry { return r }
				c.Applied, c.History, c.Now = f.applied, f.history, time.Now
			})
			before := do(t, h, "GET", "/v1/features/views?user=u1&at=944092800000", "").Body.String()
			if !strings.Contains(before, `"status":"OUTSIDE_MAX_AGE"`) {
				t.Fatalf("before the first record: got %s, want OUTSIDE_MAX_AGE", before)
			}
			got := do(t, h, "GET", target+"?user=u1&at=944092800000&wait_for=views/3/0", "").Body.String()
			if !strings.HasPrefix(got, want) || strings.Contains(got, "complete_since") {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// A GET waits by one parameter; a timeline can wait, too.
func TestWaitingByParameter(t *testing.T) {
	for _, test := range []struct{ path, want string }{
		{"/v1/features/views", `"waited":{"applied":true},"results":[{`},
		{"/v1/timeline/views", `"waited":{"applied":true},"points":[{`},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &arrival{after: 5 * time.Millisecond}
			w := do(t, waitingHandler(t, a), "GET", test.path+"?user=u1&wait_for=views/3/1234", "")
			if w.Code != 200 || !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("%d %s, want %s", w.Code, w.Body, test.want)
			}
			want := state.Partition{Topic: "views", ID: 3}
			if a.looks != 4 || a.partition != want || a.version == "" || a.offset != 1234 || len(a.entities) == 0 || a.entities[0] != "u1" {
				t.Errorf("got %d reads of the progress for offset %v of %v, entities %v; want 4 for 1234", a.looks, a.offset, a.partition, a.entities)
			}
		})
	}
}

// A key with the name of a parameter takes precedence.
func TestParametersMayBeKeys(t *testing.T) {
	r := defined.Registry(t, `
streams:
  event: {topic: events, timestamp: at, fields: {wait_for: string, at: timestamp}}
features:
  events: COUNT(7d, event, wait_for)
  moments: COUNT(7d, event, at)
`)
	reader := &fakeReader{read: func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		return make([]state.WindowState, len(reads)), nil
	}}
	h := newHandler(reader, func(c *setup) { c.Registry = func() *features.Registry { return r } })
	w := do(t, h, "GET", "/v1/features/events?wait_for=views/3/1234", "")
	if w.Code != 200 || strings.Contains(w.Body.String(), "waited") || !strings.Contains(w.Body.String(), `"entity":{"wait_for":"views/3/1234"}`) {
		t.Errorf("got %d %s, want wait_for to be a key of the entity", w.Code, w.Body)
	}
	for _, kind := range []string{"features", "timeline"} {
		w := do(t, h, "GET", "/v1/"+kind+"/moments?at=1532400000000", "")
		if now := fmt.Sprintf(`{"at":%d,`, noon.UnixMilli()); w.Code != 200 || !strings.HasPrefix(w.Body.String(), now) {
			t.Errorf("%s: got %d %s, want at to be a key of the entity", kind, w.Code, w.Body)
		}
	}
}

// The reads of the second round trip are unknown in advance, so all state counts.
func TestWaitingForMultiHopFeatures(t *testing.T) {
	a := &arrival{entities: []string{"not asked"}}
	h := waitingHandler(t, a)
	w := do(t, h, "POST", queryPath, `{"features": ["fellow_pages"], "entities": [{"page": "p1"}], "wait_for": {"topic": "views", "partition": 0, "offset": 0}}`)
	if w.Code != 200 || a.looks != 1 || len(a.entities) != 0 {
		t.Errorf("got %d %s\n%d reads of the progress, the last for %v; want one for all shards", w.Code, w.Body, a.looks, a.entities)
	}
}

// A record of a partition of which nothing was ever applied, perhaps since there is no such partition, is not merely late.
func TestWaitingForNothing(t *testing.T) {
	for want, reader := range map[string]*fakeReader{
		`"waited":{"applied":false,"nothing_applied":true}`: {position: state.Position{Offset: -1}},
		`"waited":{"applied":false}`:                        {position: state.Position{Offset: 0}},
		`"waited":{"applied":false},`:                       {position: state.Position{Offset: -1}, progressErr: errors.New("down")},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := defined.Registry(t, memberDefinitions)
			reader.read = func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
				return make([]state.WindowState, len(reads)), nil
			}
			h := newHandler(reader, func(c *setup) {
				c.Registry = func() *features.Registry { return r }
				c.Applied = (&arrival{after: time.Hour}).applied
			})
			w := do(t, h, "POST", queryPath, `{"features": ["views"], "entities": [{"user": "u1"}], "wait_for": {"topic": "views", "partition": 77, "offset": 5}}`)
			if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("got %d %s, want %s", w.Code, w.Body, want)
			}
		})
	}
}

// If the progress is unknown, no record counts as applied.
func TestWaitingTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := waitingHandler(t, nil)
		w := do(t, h, "POST", queryPath, `{"features": ["views"], "entities": [{"user": "u1"}], "wait_for": {"topic": "views", "partition": 0, "offset": 0}}`)
		if !strings.Contains(w.Body.String(), `"waited":{"applied":false}`) {
			t.Errorf("got %d %s, want applied false", w.Code, w.Body)
		}
	})
	h := waitingHandler(t, &arrival{err: errors.New("down")})
	w := do(t, h, "POST", queryPath, `{"features": ["views"], "entities": [{"user": "u1"}], "wait_for": {"topic": "views", "partition": 0, "offset": 0}}`)
	want := `{"error":{"code":"store_unavailable","message":"the store cannot be read; the server's log has the details"}}` + "\n"
	if w.Code != 503 || w.Body.String() != want {
		t.Errorf("%d %s\nwant 503 %s", w.Code, w.Body, want)
	}
}

func TestWaitParameterRefusals(t *testing.T) {
	for _, test := range []struct {
		waitFor string
		status  int
		want    string
	}{
		{
			"views/3", 400,
			`{"code":"wrong_type","message":"wait_for must be topic/partition/offset, such as transactions/3/1234; \"views/3\" is not","key":"wait_for"}`,
		},
		{"views/a/1", 400, `{"code":"wrong_type","message":"wait_for.partition must be a whole number from 0 on; \"a\" is not","key":"wait_for.partition"}`},
		{"views/1/-1", 400, `{"code":"wrong_type","message":"wait_for.offset must be a whole number from 0 on; -1 is not","key":"wait_for.offset"}`},
		{
			"view/1/1", 404,
			`{"code":"unknown_topic","message":"there is no stream that reads the topic \"view\"; did you mean \"views\"?","key":"topic","nearest":"views"}`,
		},
		{"views/1/1&wait_for=views/1/2", 400, `{"code":"duplicate_key","message":"key \"wait_for\" appears twice in the query","key":"wait_for"}`},
	} {
		w := do(t, waitingHandler(t, &arrival{}), "GET", "/v1/features/views?user=u1&wait_for="+test.waitFor, "")
		if diff := cmp.Diff(`{"error":`+test.want+"}\n", w.Body.String()); diff != "" || w.Code != test.status {
			t.Errorf("%s: status %d, want %d; error (-want +got):\n%s", test.waitFor, w.Code, test.status, diff)
		}
	}
}

func TestWaitRefusals(t *testing.T) {
	for _, test := range []struct {
		name, waitFor string
		status        int
		want          string
	}{
		{"no object", `1234`, 400, `{"code":"wrong_type","message":"wait_for must be an object with topic, partition and offset; 1234 is not","key":"wait_for"}`},
		{
			"an unknown key", `{"ofset": 1}`, 400,
			`{"code":"unknown_key","message":"wait_for has no key \"ofset\"; its keys are topic, partition, offset and timeout_ms","key":"ofset","nearest":"offset"}`,
		},
		{"a key twice", `{"offset": 1, "offset": 1}`, 400, `{"code":"duplicate_key","message":"key \"offset\" appears twice in wait_for","key":"offset"}`},
		{
			"a key too few", `{"topic": "views", "partition": 1}`, 400,
			`{"code":"missing_key","message":"wait_for has no offset; write it like {\"topic\": \"transactions\", \"partition\": 3, \"offset\": 1234}","key":"offset"}`,
		},
		{
			"no name", `{"topic": 7, "partition": 1, "offset": 1}`, 400,
			`{"code":"wrong_type","message":"wait_for.topic must be a name; 7 is not","key":"wait_for.topic"}`,
		},
		{
			"a null where something is needed", `{"topic": null, "partition": 1, "offset": 1}`, 400,
			`{"code":"missing_key","message":"wait_for has no topic; write it like {\"topic\": \"transactions\", \"partition\": 3, \"offset\": 1234}","key":"topic"}`,
		},
		{
			"a topic that no stream reads", `{"topic": "view", "partition": 1, "offset": 1}`, 404,
			`{"code":"unknown_topic","message":"there is no stream that reads the topic \"view\"; did you mean \"views\"?","key":"topic","nearest":"views"}`,
		},
		{
			"a partition below 0", `{"topic": "views", "partition": -1, "offset": 1}`, 400,
			`{"code":"wrong_type","message":"wait_for.partition must be a whole number from 0 on; -1 is not","key":"wait_for.partition"}`,
		},
		{
			"an offset in text", `{"topic": "views", "partition": 1, "offset": "1"}`, 400,
			`{"code":"wrong_type","message":"wait_for.offset must be a whole number from 0 on; \"1\" is not","key":"wait_for.offset"}`,
		},
		{
			"half of a millisecond", `{"topic": "views", "partition": 1, "offset": 1, "timeout_ms": 0.5}`, 400,
			`{"code":"wrong_type","message":"wait_for.timeout_ms must be a whole number from 0 on; 0.5 is not","key":"wait_for.timeout_ms"}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := waitingHandler(t, &arrival{})
			w := do(t, h, "POST", queryPath, `{"features": ["views"], "entities": [{"user": "u1"}], "wait_for": `+test.waitFor+`}`)
			if diff := cmp.Diff(`{"error":`+test.want+"}\n", w.Body.String()); diff != "" || w.Code != test.status {
				t.Errorf("status %d, want %d; error (-want +got):\n%s", w.Code, test.status, diff)
			}
		})
	}
}
