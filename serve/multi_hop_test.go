package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/serve/catalogue"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

const throughDefinitions = `
streams:
  login:
    topic: logins
    timestamp: time
    fields: {user: string, device: string, n: int, fee: {type: decimal, scale: 2}}
features:
  # The devices that the users of this device have logged in on.
  devices: COUNT_DISTINCT(7d, login, SET(1d, login, device, user), device)
  list: FLAT_SET(1d, login, SET(1d, login, device, user), device)
  logins: COUNT(1h, login, SET(7d, login, device, user), where='n > 2', max=2)
  exact: COUNT(1h, login, user, through=users, tile=exact, delay=10m)
  fees: SUM(1d, login, fee, n, through=numbers)
  users: SET(1d, login, device, user, keep=30m)
  numbers: LAST_DISTINCT_K(1d, login, n, device, user, k=3)
  user_logins: COUNT(1h, login, user)
  part: {expr: exact / logins, default: 0}
  over: {expr: devices + user_logins}
`

// throughWorld has the same random logins in a state and in a model, behind a server.
type throughWorld struct {
	state    *memory.Store
	model    *model.Model
	registry *features.Registry
	handler  http.Handler
	reader   *fakeReader
}

func newThroughWorld(t *testing.T, events int, random *rand.Rand, limits Limits) *throughWorld {
	t.Helper()
	r := defined.Registry(t, throughDefinitions)
	w := &throughWorld{state: memory.New(), model: model.New(r), registry: r}
	w.reader = &fakeReader{read: w.state.Read, clock: noon.UnixMilli()}
	w.handler = newHandler(w.reader, func(c *setup) {
		c.Registry, c.Limits = func() *features.Registry { return r }, limits
	})
	mapper := r.NewMapper()
	for range events {
		at := noon.UnixMilli() - random.Int64N(3*3_600_000)
		if random.IntN(10) == 0 {
			at -= random.Int64N(9) * 24 * 3_600_000 // late for some
		}
		record := record.Record{
			Partition: state.Partition{Topic: "logins"}, Timestamp: noon.UnixMilli(),
			Value: fmt.Appendf(nil, `{"time":%d,"user":"u|%d","device":"d%d","n":%d,"fee":%d.5}`,
				at, random.IntN(5), random.IntN(6), random.IntN(5), random.IntN(9)),
		}
		b := &state.Batch{Ranges: make([]state.PartitionRange, 1), Now: record.Timestamp}
		if _, err := mapper.Map(&record, 0, b); err != nil {
			t.Fatal(err)
		}
		if err := w.state.Apply(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		if err := w.model.Apply(record); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// ask asks for all features of a device and of a user of it.
func (w *throughWorld) ask(t *testing.T, device, user string, at int64) map[string]json.RawMessage {
	t.Helper()
	var names []string
	for _, f := range w.registry.Features {
		names = append(names, f.Name)
	}
	list, _ := json.Marshal(names)
	response := do(t, w.handler, "POST", queryPath,
		fmt.Sprintf(`{"features": %s, "entities": [{"device": %q, "user": %q}], "at": %d}`, list, device, user, at))
	var answer struct {
		Results []struct{ Features map[string]json.RawMessage }
	}
	if err := json.Unmarshal(response.Body.Bytes(), &answer); err != nil || response.Code != http.StatusOK {
		t.Fatalf("got %d %s, want 200 and an answer", response.Code, response.Body)
	}
	return answer.Results[0].Features
}

// The server answers what the model computes from the events, and any question takes two round trips.
func TestMultiHopAnswersEqualTheModel(t *testing.T) {
	found, capped, later := 0, 0, 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 3))
		w := newThroughWorld(t, random.IntN(60), random, Limits{})
		device, user, at := fmt.Sprint("d", random.IntN(7)), fmt.Sprint("u|", random.IntN(6)), noon.UnixMilli()-random.Int64N(20*60_000)
		w.reader.calls = nil
		got := w.ask(t, device, user, at)
		if n := len(w.reader.calls); n > 2 {
			t.Errorf("%d round trips, want at most 2", n)
		}
		for _, f := range w.registry.Features {
			var keys []string
			for _, by := range []string{"device", "user"} {
				if strings.Contains(strings.Join(f.By, " "), by) {
					keys = append(keys, string(state.AppendEntity(nil, true, value.Value{Type: value.String, Str: []byte(map[string]string{"device": device, "user": user}[by])})))
				}
			}
			var a struct {
				Value  json.RawMessage
				Status query.Status
				Exact  bool
				Capped bool
				Later  bool `json:"later_events"`
			}
			if err := json.Unmarshal(got[f.Name], &a); err != nil {
				t.Fatal(err)
			}
			entity := strings.Join(keys, "|")
			want := w.model.AnswerUntil(f, entity, at)
			if a.Later {
				later++
				want = w.model.Answer(f, entity, at)
			}
			if _, derived := f.Basis.(*features.Derived); !want.Found && !derived {
				want.Value = f.Function.Spec().Neutral
			}
			whole := (&query.Answer{Value: want.Value, Items: want.Items, Shape: aggregate.List}).AppendJSON(nil)
			value, _, _ := bytes.Cut(bytes.TrimPrefix(whole, []byte(`{"value":`)), []byte(`,"status":`))
			if string(a.Value) != string(value) || a.Capped != want.Capped || a.Later != (a.Status == query.LaterEvents) ||
				!a.Later && (a.Status != query.NotFound) != want.Found || a.Exact == (a.Capped || a.Later) {
				t.Errorf("seed %d: %s of %v at %d is %s, want %s capped %v found %v", seed, f.Definition, keys, at, got[f.Name], value, want.Capped, want.Found)
			}
			if want.Found {
				found++
			}
			if want.Capped {
				capped++
			}
		}
	}
	if found < 100 || capped < 10 || later < 100 {
		t.Errorf("%d answers were found, %d capped and %d may count later events, want at least 100, 10 and 100", found, capped, later)
	}
}

func TestMultiHopCoverage(t *testing.T) {
	w := newThroughWorld(t, 0, nil, Limits{})
	got := w.ask(t, "d1", "u1", noon.UnixMilli())
	for name, want := range map[string]string{
		"logins": `{"value":0,"status":"NOT_FOUND","from":1532516460000,"to":1532520000000,"exact":true}`,
		"exact":  `{"value":0,"status":"NOT_FOUND","from":1532515800001,"to":1532519400000,"exact":true}`,
		"list":   `{"value":null,"status":"NOT_FOUND","from":1532437200000,"to":1532520000000,"exact":true}`,
	} {
		if string(got[name]) != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
		if name == "logins" {
			byPath := do(t, w.handler, "GET", "/v1/features/logins?device=d1", "").Body.String()
			if !strings.Contains(byPath, `"logins":`+want) {
				t.Errorf("GET of the feature's path: %s, want %s", byPath, want)
			}
		}
	}
}

// Members of a list count like entities of the question.
func TestMultiHopRefusesQuestions(t *testing.T) {
	for body, want := range map[string]string{
		`{"features": ["devices", "over"], "entities": [{"device": "d1", "user": "u"}, {"device": "d2", "user": "u"}]}`: `2 features, which may read up to 200 further entities, for 2 entities are more than the 300 values that one question may ask for`,
		`{"features": ["devices"], "entities": [{"user": "u1"}]}`:                                                       `entity 0 has no key "device" (string), which feature "devices" needs`,
	} {
		w := newThroughWorld(t, 0, nil, Limits{Values: 300})
		response := do(t, w.handler, "POST", queryPath, body)
		var answer struct{ Error *reply.Error }
		if err := json.Unmarshal(response.Body.Bytes(), &answer); err != nil || answer.Error == nil || answer.Error.Message != want {
			t.Errorf("%s: %s\nwant %s", body, response.Body, want)
		}
		if len(w.reader.calls) > 0 {
			t.Errorf("%s: the store was read for a refused question: %v", body, w.reader.calls)
		}
	}
}

// If the store fails between the round trips, the question fails. If a list is damaged, so is the answer.
func TestMultiHopFailsAsAWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	w := newThroughWorld(t, 50, random, Limits{})
	ask := func() (int, string) {
		response := do(t, w.handler, "POST", queryPath, `{"features": ["fees"], "entities": [{"device": "d1", "user": "u|1"}, {"device": "d1", "user": "u|2"}]}`)
		return response.Code, response.Body.String()
	}
	w.reader.read = func(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
		if len(w.reader.calls) > 1 {
			return nil, context.DeadlineExceeded
		}
		return w.state.Read(ctx, reads)
	}
	if code, body := ask(); code != http.StatusServiceUnavailable || !strings.Contains(body, "the store did not answer within 2s") {
		t.Errorf("got %d %s, want 503", code, body)
	}
	w.reader.read = func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		states := make([]state.WindowState, len(reads))
		for i := range states {
			states[i].Log = state.Log("\x09......") // of a future version
		}
		return states, nil
	}
	if code, body := ask(); code != http.StatusOK || strings.Count(body, `{"value":null,"status":"DAMAGED"`) != 2 {
		t.Errorf("got %d %s, want 200 and DAMAGED twice", code, body)
	}
}

func TestMultiHopInTheCatalogue(t *testing.T) {
	w := newThroughWorld(t, 0, nil, Limits{})
	var c catalogue.Catalogue
	if err := json.Unmarshal(do(t, w.handler, "GET", "/v1/features", "").Body.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	found := map[string]catalogue.Feature{}
	for _, f := range c.Features {
		found[f.Name] = f
	}
	got := found["logins"]
	got.Series = nil
	if diff := cmp.Diff(catalogue.Feature{
		Name: "logins", Definition: `COUNT(1h, login, SET(7d, login, device, user), where='n > 2', max=2)`, Stream: "login",
		Meaning: "count of login events for each user in the set of user for each device", Where: "n > 2",
		Function: "count", Through: &catalogue.Through{Set: "SET(7d, login, device, user)", Key: "user", Max: 2},
		Keys: []catalogue.Key{{Name: "device", Type: "string"}}, Window: "1h", Tile: "1m", Keep: "1h",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var states []string
	for _, s := range found["logins"].Series {
		states = append(states, s.State)
	}
	if diff := cmp.Diff([]string{"members", "tiles"}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if got := *found["exact"].Through; got != (catalogue.Through{Set: "users", Key: "user", Max: 100}) {
		t.Errorf("exact has the hop %+v, want 100 users by user", got)
	}
}
