package serve

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

const pendingDefinitions = `
streams:
  login:
    topic: logins
    timestamp: {path: at, unit: ms}
    id: id
    fields: {user: string, device: {type: string, required: true}}
  payment:
    topic: payments
    match: type == "payment"
    timestamp: {path: at, unit: ms}
    id: id
    remember_ids: 10m
    max_future: 1m
    fields: {user: string, status: string, amount: {type: decimal, path: money.amount}}
  refused:
    topic: payments
    match: status == "refused"
    timestamp: {path: at, unit: ms}
    fields: {user: string}
features:
  devices: COUNT_DISTINCT(1d, login, user, device)
  last: LAST(1d, payment, amount, user)
  paid: SUM(7d, payment, amount, user, where='status == "ok"')
  per_device: {expr: tx / devices, default: -1}
  refusals: COUNT(1h, refused, user, tile=exact)
  tx: COUNT(1d, payment, user)
  met: SEEN(30d, login, user, device)
  met_lately: SEEN(7d, login, user, device, tile=exact)
  met_now: SEEN(30d, login, user, device, current=counted)
  met_before: SEEN(7d, login, user, device, tile=exact, exclude=current)
services:
  all: [devices, last, paid, per_device, refusals, tx]
`

// bus is a registry whose events go to a store in memory.
type bus struct {
	*testing.T
	registry *features.Registry
	store    *memory.Store
	handler  http.Handler
}

// clocked is a store without progress.
type clocked struct{ *memory.Store }

func (clocked) Clock(context.Context) (int64, error) { return noon.UnixMilli(), nil }

func newBus(t *testing.T) *bus {
	r := defined.Registry(t, pendingDefinitions)
	b := &bus{T: t, registry: r, store: memory.New()}
	b.handler = newHandler(clocked{b.store}, func(c *setup) { c.Registry = func() *features.Registry { return r } })
	return b
}

// arrive applies an event of a topic, of a record that is written at noon.
func (b *bus) arrive(topic, event string) {
	b.Helper()
	b.arriveAt(noon, topic, event)
}

func (b *bus) arriveAt(at time.Time, topic, event string) {
	b.Helper()
	batch := &state.Batch{}
	record := &record.Record{Partition: state.Partition{Topic: topic}, Timestamp: at.UnixMilli(), Value: []byte(event)}
	if _, err := b.registry.NewMapper().Map(record, 0, batch); err != nil {
		b.Fatal(err)
	}
	if err := b.store.Apply(context.Background(), batch); err != nil {
		b.Fatal(err)
	}
}

// ask asks for all features of a user, with further keys in the question.
func (b *bus) ask(more string) string {
	b.Helper()
	w := do(b, b.handler, "POST", queryPath, `{"service": "all", "entities": [{"user": "u1"}]`+more+`}`)
	if w.Code != http.StatusOK {
		b.Fatal(w.Body)
	}
	return w.Body.String()
}

func payment(id string, seconds int, status string) string {
	return fmt.Sprintf(`{"type": "payment", "id": %q, "at": %d, "user": "u1", "status": %q, "money": {"amount": 12.30}}`,
		id, noon.UnixMilli()+int64(seconds)*1000, status)
}

// A question with pending events has the same answer as after their arrival, and states their outcomes.
func TestPending(t *testing.T) {
	b := newBus(t)
	b.arrive("payments", payment("p0", -60, "ok"))
	b.arrive("logins", `{"id": 1, "at": 1532519980000, "user": "u1", "device": "d1"}`)
	before := b.ask("")
	login := `{"id": 2, "at": 1532519990000, "user": "u1", "device": "d2"}`
	pending := `, "pending": [{"stream": "payment", "event": ` + payment("p1", -7, "refused") + `}, {"event": ` + login + `, "stream": "login"}]`
	thought := b.ask(pending)
	if diff := cmp.Diff(before, b.ask("")); diff != "" {
		t.Errorf("the state was changed (-before +after):\n%s", diff)
	}
	b.arrive("payments", payment("p1", -7, "refused"))
	b.arrive("logins", login)
	const outcomes = `"pending":[{"stream":"payment","time":1532519993000,"deduplicated":true},{"stream":"login","time":1532519990000,"deduplicated":false}],`
	arrived := b.ask(`, "at": 1532519993000`)
	// A question about a past moment cannot know that no event came after it.
	arrived = strings.NewReplacer(`"LATER_EVENTS"`, `"PRESENT"`, `"exact":false,"later_events":true`, `"exact":true`).Replace(arrived)
	if want := strings.Replace(arrived, `"results"`, outcomes+`"results"`, 1); thought != want {
		t.Errorf("with the pending event:\n%safter it has arrived:\n%s", thought, want)
	}
	for _, value := range []string{`"tx":{"value":2`, `"refusals":{"value":1`, `"per_device":{"value":1`, `"devices":{"value":2`, `"paid":{"value":12.3`} {
		if !strings.Contains(thought, value) {
			t.Errorf("the answer does not contain %s: %s", value, thought)
		}
	}
}

// Whether an entity has met a value is answered as of before the pending event, by default; other features of the same
// state count the event.
func TestFirstTimeOfPending(t *testing.T) {
	b := newBus(t)
	b.arrive("logins", `{"id": 1, "at": 1532519980000, "user": "u1", "device": "d1"}`)
	ask := func(more string) (met string) {
		t.Helper()
		w := do(t, b.handler, "POST", queryPath, `{"features": ["devices", "met", "met_lately", "met_now", "met_before"], "entities": [{"user": "u1"}], "members":
			{"met": ["d1", "d2"], "met_lately": ["d1", "d2"], "met_now": ["d1", "d2"], "met_before": ["d1", "d2"]}`+more+`}`)
		for _, v := range regexp.MustCompile(`("devices":."value":|"value":)(\w+)`).FindAllStringSubmatch(w.Body.String(), -1) {
			met += v[2] + " "
		}
		return met
	}
	const login = `{"id": 2, "at": 1532519990000, "user": "u1", "device": "d2"}`
	const pending = `, "pending": {"stream": "login", "event": ` + login + `}`
	if got, want := ask(pending), "2 true false true false true true true false "; got != want {
		t.Errorf("with the pending event: got %s, want %s", got, want)
	}
	b.arrive("logins", login)
	if got, want := ask(""), "2 true true true true true true true false "; got != want {
		t.Errorf("after it has arrived: got %s, want %s", got, want)
	}
	w := do(t, b.handler, "POST", queryPath, `{"features": ["met"], "entities": [{"user": "u1"}], "members": ["d3"]`+pending+`}`)
	if !strings.Contains(w.Body.String(), `"uncounted":true`) {
		t.Errorf("no answer counts the event, and the outcome does not say so: %s", w.Body)
	}
}

// The moment is the time of the latest pending event, or the moment in the question.
func TestMomentOfPending(t *testing.T) {
	b := newBus(t)
	for more, want := range map[string]string{
		`, "pending": []`: `{"at":1532520000000,"pending":[],`,
		`, "pending": {"stream": "payment", "event": ` + payment("p", 30, "ok") + `}`:                                                                           `{"at":1532520000000,"pending":[{"stream":"payment","time":1532520000000,`,
		`, "pending": {"stream": "payment", "event": ` + payment("p", -3000, "ok") + `}`:                                                                        `{"at":1532517000000,`,
		`, "pending": [{"stream": "payment", "event": ` + payment("p", -9, "ok") + `}, {"stream": "payment", "event": ` + payment("q", -10, "ok") + `}]`:        `{"at":1532519991000,`,
		`, "at": 1532519000000, "pending": {"stream": "payment", "event": ` + payment("p", -9, "ok") + `}`:                                                      `{"at":1532519000000,`,
		`, "at": "2018-07-25T12:00:01Z", "pending": {"stream": "login", "event": {"at": 1532519990000, "user": "u1", "device": "d2"}}`:                          `{"at":1532520001000,`,
		`, "at": 1532520000000, "pending": {"stream": "payment", "event": ` + strings.Replace(payment("p", 0, "ok"), "1532520000000", "1531000000000", 1) + `}`: `{"at":1532520000000,"pending":[{"stream":"payment","time":1531000000000,"deduplicated":true,"late":true,"uncounted":true}],`,
	} {
		if got := b.ask(more); !strings.HasPrefix(got, want) {
			t.Errorf("%s\n got %s\nwant %s", more, got, want)
		}
	}
}

// A pending event that was already applied counts once if its stream remembers ids; if it does not, the answer says so.
func TestPendingThatHasArrived(t *testing.T) {
	b := newBus(t)
	const login = `{"id": 1, "at": 1532520000000, "user": "u1", "device": "d1"}`
	event := payment("p1", 0, "ok")
	b.arrive("payments", event)
	got := b.ask(`, "pending": [{"stream": "payment", "event": ` + event + `}, {"stream": "login", "event": ` + login + `}]`)
	for _, want := range []string{`"tx":{"value":1,`, `"paid":{"value":12.3,`, `"devices":{"value":1,`, `"deduplicated":true,"met":1532520000000},`, `"deduplicated":false}]`} {
		if !strings.Contains(got, want) {
			t.Errorf("the answer does not contain %s: %s", want, got)
		}
	}
	got = b.ask(`, "pending": {"stream": "payment", "event": ` + strings.Replace(event, `"id": "p1"`, `"id": null`, 1) + `}`)
	for _, want := range []string{`"tx":{"value":2,`, `"deduplicated":false}]`} {
		if !strings.Contains(got, want) {
			t.Errorf("the answer does not contain %s: %s", want, got)
		}
	}
}

// A pending event counts in all generations of its entities' state, whichever a feature reads, and once.
func TestPendingInAllGenerations(t *testing.T) {
	b := newBus(t)
	before := b.registry.Plan()
	after := defined.Registry(t, strings.Replace(pendingDefinitions, "tx: COUNT(1d, payment, user)", "tx: COUNT(3d, payment, user, tile=1h)", 1))
	history := func(epochs ...state.PlanEpoch) *state.History {
		h := &state.History{Plans: map[string]*state.Plan{before.Version: before}, Newest: noon.UnixMilli(), Now: noon.UnixMilli()}
		for _, topic := range []string{"logins", "payments"} {
			for _, e := range epochs {
				e.Topic = topic
				h.PlanEpochs = append(h.PlanEpochs, e)
			}
		}
		return h
	}
	plan := state.Bind(after.Plan(), &state.Known{
		Plans: map[string]*state.Plan{before.Version: before}, Now: noon.UnixMilli(),
		History: history(state.PlanEpoch{Version: before.Version, Last: state.MaxTime}),
	})
	h := history(state.PlanEpoch{Version: before.Version, Last: noon.Add(-60 * day).UnixMilli()}, state.PlanEpoch{Version: plan.Version, Last: state.MaxTime})
	h.Plans[plan.Version] = plan
	b.registry = after.Keeping(plan, h)
	if tx := defined.Feature(t, b.registry, "tx").Series[0]; tx.ID == defined.Feature(t, after, "tx").Series[0].ID {
		t.Fatal("the feature reads the generation that it had before")
	}
	b.handler = newHandler(clocked{b.store}, func(c *setup) { c.Registry = func() *features.Registry { return b.registry } })
	event := payment("p1", 0, "ok")
	for _, arrived := range []bool{false, true} {
		if arrived {
			b.arrive("payments", event)
		}
		got := b.ask(`, "pending": {"stream": "payment", "event": ` + event + `}`)
		for _, want := range []string{`"tx":{"value":1,`, `"paid":{"value":12.3,`, `"last":{"value":12.3,`} {
			if !strings.Contains(got, want) {
				t.Errorf("the answer does not contain %s: %s", want, got)
			}
		}
	}
	if got, want := b.ask(`, "pending": {"stream": "payment", "event": `+payment("p2", 0, "ok")+`}`), `"tx":{"value":2,`; !strings.Contains(got, want) || strings.Contains(got, `"met"`) {
		t.Errorf("the answer does not contain %s, or says that it met the event: %s", want, got)
	}
}

func TestPendingRefusals(t *testing.T) {
	b := newBus(t)
	event := func(name, json string) string { return `{"stream": "` + name + `", "event": ` + json + `}` }
	for pending, want := range map[string]string{
		`3`:                                    `{"code":"wrong_type","message":"pending must be an object with stream and event, or a list of them; 3 is not","key":"pending"}`,
		`{"stream": null, "event": {}}`:        `{"code":"missing_key","message":"pending event 0 must have stream and event, such as {\"stream\": \"transaction\", \"event\": {…}}","event":0}`,
		`{"stream": "payment", "event": null}`: `{"code":"missing_key","message":"pending event 0 must have stream and event, such as {\"stream\": \"transaction\", \"event\": {…}}","event":0}`,
		`[{"stream": "login", "event": {"at": -1, "device": "d"}}, "x"]`: `{"code":"wrong_type","message":"pending must be an object with stream and event, or a list of them; \"x\" is not one","key":"pending","event":1}`,
		`[` + strings.Repeat(`1,`, 16) + `1]`:                            `{"code":"too_many_values","message":"17 pending events are more than the 16 that one question may have"}`,
		`{"stream": "login"}`:                                            `{"code":"missing_key","message":"pending event 0 must have stream and event, such as {\"stream\": \"transaction\", \"event\": {…}}","event":0}`,
		`{"event": {}}`:                                                  `{"code":"missing_key","message":"pending event 0 must have stream and event, such as {\"stream\": \"transaction\", \"event\": {…}}","event":0}`,
		`{"stream": "login", "events": {}}`:                              `{"code":"unknown_key","message":"pending event 0 has no key \"events\"; its keys are stream and event","key":"events","event":0,"nearest":"event"}`,
		`{"stream": "login", "stream": "login"}`:                         `{"code":"duplicate_key","message":"key \"stream\" appears twice in pending event 0","key":"stream","event":0}`,
		`{"event": {}, "event": {}}`:                                     `{"code":"duplicate_key","message":"key \"event\" appears twice in pending event 0","key":"event","event":0}`,
		event("logins", `{}`):                                            `{"code":"unknown_stream","message":"there is no stream \"logins\"; did you mean \"login\"?","event":0,"nearest":"login"}`,
		event("refunds", `{}`):                                           `{"code":"unknown_stream","message":"there is no stream \"refunds\"; known are login, payment, refused","event":0}`,
		`{"stream": 1, "event": {}}`:                                     `{"code":"wrong_type","message":"stream must be a name; 1 is not","key":"stream","event":0}`,
		event("login", `[]`):                                             `{"code":"bad_event","message":"pending event 0 cannot be used: stream login: expected an object, found an array","event":0,"reason":"wrong_type"}`,
		event("login", `{"device": "d"}`):                                `{"code":"bad_event","message":"pending event 0 cannot be used: stream login: at: the event has no timestamp","event":0,"reason":"missing_timestamp","path":"at"}`,
		event("login", `{"at": 1532520000000}`):                          `{"code":"bad_event","message":"pending event 0 cannot be used: stream login: device: the field device is required","event":0,"reason":"missing_field","path":"device"}`,
		event("payment", payment("p", 120, "ok")):                        `{"code":"bad_event","message":"pending event 0 cannot be used: stream payment: at: the event is 2m0s ahead of its record; the limit is 1m0s","event":0,"reason":"future_timestamp","path":"at"}`,
		event("payment", strings.Replace(payment("p", 0, "ok"), "12.30", `"12.345"`, 1)): `{"code":"bad_event","message":"pending event 0 cannot be used: stream payment: money.amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string, which ` + "`round: true`" + ` rounds","event":0,"reason":"wrong_type","path":"money.amount"}`,
		event("refused", payment("p", 0, "ok")):                                          `{"code":"bad_event","message":"pending event 0 does not belong to stream \"refused\", which takes events for which status == \"refused\"","event":0}`,
	} {
		w := do(t, b.handler, "POST", queryPath, `{"service": "all", "entities": [{"user": "u1"}], "pending": `+pending+`}`)
		status := http.StatusBadRequest
		switch {
		case strings.Contains(want, "unknown_stream"):
			status = http.StatusNotFound
		case strings.Contains(want, "too_many"):
			status = http.StatusRequestEntityTooLarge
		}
		if w.Code != status {
			t.Errorf("%s: status %d, want %d", pending, w.Code, status)
		}
		if diff := cmp.Diff(`{"error":`+want+"}\n", w.Body.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pending, diff)
		}
	}
}

// An event is mapped exactly as sent.
func TestPendingIsTakenAsSent(t *testing.T) {
	reader := &fakeReader{}
	r := defined.Registry(t, pendingDefinitions)
	h := newHandler(reader, func(c *setup) { c.Registry = func() *features.Registry { return r } })
	const event = `{"a\u0074": 1532520000000, "user": "\ud83d\ude00 \\ \ud800", "device": "d\/\"1", "id": 1e3, "at": 1532520000001}`
	w := do(t, h, "POST", queryPath, `{"features": ["devices"], "entities": [{"user": "u1"}], "pending": {"stream": "login", "event": `+event+`}}`)
	if w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	want := &state.Batch{}
	if _, err := r.NewMapper().Map(&record.Record{Partition: state.Partition{Topic: "logins"}, Timestamp: noon.UnixMilli(), Value: []byte(event)}, 0, want); err != nil {
		t.Fatal(err)
	}
	bySeries := cmp.Comparer(func(a, b *state.Series) bool { return a == b })
	if diff := cmp.Diff(want.Mutations, reader.pending.Mutations, bySeries); diff != "" {
		t.Errorf("mutations (-want +got):\n%s", diff)
	}
	if got, want := reader.pending.Updates[0].Entity, want.Updates[0].Entity; !bytes.Equal(got, want) {
		t.Errorf("the entity is %s, want %s", got, want)
	}
}

// A pending event is JSON, also for a stream whose records are not.
func TestPendingOfAStreamOfLines(t *testing.T) {
	r := defined.Registry(t, `
streams:
  login:
    topic: logins
    timestamp: meta.at
    format: {type: csv, columns: [user, meta.at, device]}
    fields: {user: string, device: string}
features:
  devices: COUNT_DISTINCT(1d, login, user, device)
`)
	h := newHandler(clocked{memory.New()}, func(c *setup) { c.Registry = func() *features.Registry { return r } })
	w := do(t, h, "POST", queryPath, `{"features": ["devices"], "entities": [{"user": "u1"}],
		"pending": {"stream": "login", "event": {"meta": {"at": 1532520000000}, "user": "u1", "device": "d1"}}}`)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"devices":{"value":1,`) {
		t.Errorf("got %d %s, want 200 and a count of 1", w.Code, w.Body)
	}
}

// A pending event of a stream that makes several of a record counts all of them.
func TestPendingOfSeveralEvents(t *testing.T) {
	r := defined.Registry(t, `
streams:
  all: {topic: orders, timestamp: at, fields: {user: string}}
  line:
    topic: orders
    timestamp: at
    id: id
    remember_ids: 1h
    each: items
    fields: {user: string, sku: {type: string, path: items.sku}, price: {type: int, path: items.price}}
  leg:
    topic: trips
    timestamp: legs.at
    each: legs
    fields: {user: string, fare: {type: int, path: legs.fare}}
features:
  fares: SUM(1d, leg, fare, user)
  orders: COUNT(1d, all, user)
  skus: COUNT_DISTINCT(1d, line, user, sku)
  dear: SUM(1d, line, price, user, where='price > 5')
`)
	h := newHandler(clocked{memory.New()}, func(c *setup) { c.Registry = func() *features.Registry { return r } })
	ask := func(items string) string {
		return do(t, h, "POST", queryPath, `{"features": ["skus", "dear", "orders"], "entities": [{"user": "u1"}],
			"pending": {"stream": "line", "event": {"id": 7, "at": 1532520000000, "user": "u1", "items": `+items+`}}}`).Body.String()
	}
	got := ask(`[{"sku": "a", "price": 6}, {"sku": "b", "price": 5}, {"sku": "c", "price": 7}]`)
	for _, want := range []string{`"skus":{"value":3,`, `"dear":{"value":13,`, `"orders":{"value":1,`, `"pending":[{"stream":"line","time":1532520000000,"deduplicated":true}]`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got, want := ask(`[]`), `pending event 0 does not belong to stream \"line\""`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	many := `{"stream": "line", "event": {"at": 1532520000000, "user": "u1", "items": [` + strings.Repeat(`{"sku":"a","price":6},`, 999) + `{"sku":"a","price":6}]}}`
	for events, want := range map[int]string{
		8: `"orders":{"value":8,`,
		9: `{"error":{"code":"too_many_values","message":"the pending events up to this one make 18009 changes of state, more than the 16384 that those of one question may; ` +
			`ask about fewer events, or elements of them, at a time","event":8}}`,
	} {
		got := do(t, h, "POST", queryPath, `{"features": ["orders"], "entities": [{"user": "u1"}], "pending": [`+strings.Repeat(many+",", events-1)+many+`]}`)
		if !strings.Contains(got.Body.String(), want) {
			t.Errorf("%d events of 1,000 elements: got %d %s, want %s", events, got.Code, got.Body, want)
		}
	}
	for _, key := range []string{"pending", "event"} { // elements have times of their own, in any order
		got = do(t, h, "POST", queryPath, `{"features": ["fares"], "entities": [{"user": "u1"}], "`+key+`": {"stream": "leg", "event": {"user": "u1", "legs": [
			{"at": 1532519000000, "fare": 1}, {"at": 1532520000000, "fare": 2}, {"at": 1532519500000, "fare": 4}]}}}`).Body.String()
		for _, want := range map[string][]string{"pending": {`{"at":1532520000000,`, `"fares":{"value":7,`}, "event": {`{"at":1532520000000,`}}[key] {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s", key, got, want)
			}
		}
	}
}

// Events with an empty ID, as unset fields of Protobuf have it, are not one event.
func TestPendingWithEmptyID(t *testing.T) {
	b := newBus(t)
	b.arrive("payments", payment("", -60, "ok"))
	w := do(t, b.handler, "POST", queryPath, `{"features": ["tx"], "entities": [{"user": "u1"}], "pending": [
		{"stream": "payment", "event": `+payment("", -1, "ok")+`}, {"stream": "payment", "event": `+payment("", 0, "ok")+`}]}`)
	if got := w.Body.String(); !strings.Contains(got, `"tx":{"value":3,`) || strings.Contains(got, `"deduplicated":true`) {
		t.Errorf("got %s, want a count of 3, without deduplication", got)
	}
}

// Concurrent questions do not mix their pending events.
func TestPendingOfManyQuestions(t *testing.T) {
	b := newBus(t)
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			device := fmt.Sprint("d", n)
			for range 50 {
				w := do(t, b.handler, "POST", queryPath, fmt.Sprintf(`{"features": ["devices"], "entities": [{"user": "u%d"}],
					"pending": {"stream": "login", "event": {"at": 1532520000000, "user": "u%[1]d", "device": %q}}}`, n, device))
				if !strings.Contains(w.Body.String(), `"devices":{"value":1,`) {
					t.Errorf("got %s, want a count of 1", w.Body)
				}
			}
		})
	}
	group.Wait()
}

// Whoever reuses the ID of an old event hides the event in hand, and the answer says when the ID was met.
func TestReusedID(t *testing.T) {
	b := newBus(t)
	b.arriveAt(noon.Add(-5*time.Minute+345*time.Millisecond), "payments", payment("p1", -301, "ok"))
	b.arriveAt(noon.Add(-time.Minute), "payments", payment("p1", -60, "ok"))
	other := strings.Replace(payment("p1", 0, "ok"), `"u1"`, `"u2"`, 1)
	for _, test := range []struct{ name, question, want string }{
		{"reused", `"entities": [{"user": "u1"}], "pending": {"stream": "payment", "event": ` + payment("p1", 0, "ok") + `}`,
			`"pending":[{"stream":"payment","time":1532520000000,"deduplicated":true,"met":1532519700000}],"results":[{"entity":{"user":"u1"},"features":{"tx":{"value":2,`},
		{"new", `"entities": [{"user": "u1"}], "pending": {"stream": "payment", "event": ` + payment("p2", 0, "ok") + `}`,
			`"deduplicated":true}],"results":[{"entity":{"user":"u1"},"features":{"tx":{"value":3,`},
		{"known to somebody else", `"entities": [{"user": "u2"}], "pending": {"stream": "payment", "event": ` + other + `}`,
			`"deduplicated":true}],"results":[{"entity":{"user":"u2"},"features":{"tx":{"value":1,`},
		{"of somebody who is not asked about", `"entities": [{"user": "u2"}], "pending": {"stream": "payment", "event": ` + payment("p1", 0, "ok") + `}`,
			`"deduplicated":true,"uncounted":true}],`},
		{"the second of several", `"entities": [{"user": "u1"}], "pending": [{"stream": "payment", "event": ` + payment("p2", 0, "ok") + `}, {"stream": "payment", "event": ` +
			payment("p1", 0, "ok") + `}]`, `"deduplicated":true},{"stream":"payment","time":1532520000000,"deduplicated":true,"met":1532519700000}],`},
		{"twice in a question", `"entities": [{"user": "u1"}], "pending": [{"stream": "payment", "event": ` + payment("p2", 0, "ok") + `}, {"stream": "payment", "event": ` +
			payment("p2", 0, "ok") + `}]`, `"deduplicated":true},{"stream":"payment","time":1532520000000,"deduplicated":true,"met":1532520000000}],`},
		{"without an ID", `"entities": [{"user": "u1"}], "pending": {"stream": "payment", "event": ` + strings.Replace(payment("p1", 0, "ok"), `"p1"`, "null", 1) + `}`,
			`"deduplicated":false}],"results":[{"entity":{"user":"u1"},"features":{"tx":{"value":3,`},
	} {
		w := do(t, b.handler, "POST", queryPath, `{"features": ["tx"], `+test.question+`}`)
		if !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s: %s, want %s", test.name, w.Body, test.want)
		}
	}
}

// A pending event that no answer counts is reported: that of another user, or one that no feature asked for selects.
func TestPendingEventsThatCountNowhere(t *testing.T) {
	b := newBus(t)
	other := strings.Replace(payment("p1", -7, "refused"), `"u1"`, `"u2"`, 1)
	const uncounted = `"deduplicated":true,"uncounted":true}`
	for _, test := range []struct{ name, question, want string }{
		{"of the user", `"service": "all", "entities": [{"user": "u1"}]`, `"deduplicated":true}]`},
		{"of another user", `"service": "all", "entities": [{"user": "u3"}]`, uncounted},
		{"of one of several users", `"service": "all", "entities": [{"user": "u3"}, {"user": "u1"}]`, `"deduplicated":true}]`},
		{"of nobody", `"service": "all", "entities": [{"user": null}]`, uncounted},
		{"of another stream than the feature's", `"features": ["devices"], "entities": [{"user": "u1"}]`, uncounted},
		{"that the filter leaves out", `"features": ["paid"], "entities": [{"user": "u1"}]`, uncounted},
		{"of a part of the feature", `"features": ["per_device"], "entities": [{"user": "u1"}]`, `"deduplicated":true}]`},
		{"further back than the feature is kept", `"features": ["tx"], "entities": [{"user": "u1"}], "at": 1532000000000`, uncounted},
	} {
		body := `{` + test.question + `, "pending": {"stream": "payment", "event": ` + payment("p1", -7, "refused") + `}}`
		if w := do(t, b.handler, "POST", queryPath, body); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s: %s, want %s", test.name, w.Body, test.want)
		}
	}
	both := b.ask(`, "pending": [{"stream": "payment", "event": ` + other + `}, {"stream": "payment", "event": ` + payment("p2", -7, "refused") + `}]`)
	if want := `"deduplicated":true,"uncounted":true},{"stream":"payment","time":1532519993000,"deduplicated":true}],`; !strings.Contains(both, want) {
		t.Errorf("%s, want %s", both, want)
	}
	if got := b.ask(`, "pending": []`); !strings.Contains(got, `"pending":[],`) {
		t.Errorf("no pending events: %s", got)
	}
}
