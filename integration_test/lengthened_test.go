package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// counted is a version of definitions that count the same events of u1 over changing windows.
type counted struct {
	tiled, logged time.Duration
	tile          time.Duration // of tiled
	max           int           // of the log, which is never reached
	met           int           // the cap of values last seen, which is reached
	more          string        // other features
}

func (c *counted) text() string {
	return fmt.Sprintf(`
features:
  reference: COUNT(20d, payment, user_id, tile=1h)
  tiled: COUNT(%s, payment, user_id, tile=%s)
  logged: COUNT(%s, payment, user_id, tile=exact, max=%d)
  met: COUNT_DISTINCT(20d, payment, user_id, event_id, method=last_seen, max=%d)
%s`, c.tiled, c.tile, c.logged, c.max, c.met, c.more)
}

// ages are how long before the test events of u1 were, and how many: far enough from the edges of all windows that none
// leaves a window meanwhile.
var ages = []struct {
	age time.Duration
	n   int
}{{10 * 24 * time.Hour, 5}, {36 * time.Hour, 10}, {15 * time.Hour, 20}, {90 * time.Minute, 30}, {30 * time.Minute, 40}}

// since counts the events of u1 that are not older than an age.
func since(age time.Duration) (n int64) {
	for _, a := range ages {
		if a.age <= age {
			n += int64(a.n)
		}
	}
	return n
}

// watching asks for the counts of u1 all the time, and fails the test if one has less than before.
type watching struct {
	t     *testing.T
	url   string
	began time.Time
	over  chan struct{}
	done  sync.WaitGroup

	mu  sync.Mutex
	now counted
	// most is what a count has promised, without the events that came since the test began. State that a shorter window no
	// longer keeps may be there for a while: a count that has more than it promises may lose that again.
	most  map[string]int64
	met   int // the least cap of values since all was whole; the state may have some more for a moment
	asked int
	whole bool // the last answers were all complete
}

// watch asks every 20 ms, until the test stops it.
func watch(t *testing.T, url string, began time.Time, now counted) *watching {
	w := &watching{t: t, url: url, began: began, over: make(chan struct{}), now: now, most: map[string]int64{}, met: now.met}
	w.done.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				w.ask()
			case <-w.over:
				return
			}
		}
	})
	return w
}

func (w *watching) stop() {
	close(w.over)
	w.done.Wait()
}

// windows are those of the definitions loaded last, or about to be loaded.
func (c *counted) windows() map[string]time.Duration {
	return map[string]time.Duration{"tiled": c.tiled, "logged": c.logged}
}

// changing says which definitions come next: from now on, a count may lack what is not in its next window.
func (w *watching) changing(next counted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, window := range next.windows() {
		w.most[name] = min(w.most[name], since(window))
	}
	w.now, w.met, w.whole = next, min(w.met, next.met), false
}

func (w *watching) ask() {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := time.Now().UnixMilli()
	results, err := (&weir{t: w.t, url: w.url}).ask(question{
		Features: []string{"reference", "tiled", "logged", "met"}, Entities: []json.RawMessage{json.RawMessage(`{"user_id":"u1"}`)}, At: at,
	})
	if err != nil {
		w.t.Error(err)
		return
	}
	answers := results[0]
	value := func(name string) int64 {
		n, err := strconv.ParseInt(string(answers[name].Value), 10, 64)
		if err != nil {
			w.t.Error(err)
		}
		return n
	}
	live := value("reference") - since(20*24*time.Hour)
	w.asked++
	w.whole = true
	for name, window := range w.now.windows() {
		a, has := answers[name], value(name)-live
		begins, says := *a.From, "complete"
		if a.CompleteSince != nil {
			if says = fmt.Sprint("complete since ", *a.CompleteSince); *a.CompleteSince > time.Now().UnixMilli() {
				w.t.Errorf("%s is complete since %d, a moment to come", name, *a.CompleteSince)
			}
			begins = max(begins, *a.CompleteSince)
		}
		promised := since(w.began.Sub(time.UnixMilli(begins)))
		if has < max(promised, w.most[name]) {
			w.t.Errorf("%s over %v has %d events, is %s, %s; it had %d, and %d are newer", name, window, has, a.Status, says, w.most[name], promised)
		}
		w.most[name] = max(w.most[name], min(promised, since(window)))
		w.whole = w.whole && a.Status == query.Present && *a.From <= at-(window-w.now.tile).Milliseconds() && has == since(window)
	}
	met := value("met")
	if met < int64(w.met) {
		w.t.Errorf("met fell to %d, with the cap %d, before %d", met, w.now.met, w.met)
	}
	if w.whole = w.whole && answers["met"].Status == query.Present && met >= int64(w.now.met); w.whole {
		w.met = w.now.met
	}
}

// awaitWhole waits until the answers over the newest windows are complete.
func (w *watching) awaitWhole() {
	w.t.Helper()
	testkit.Eventually(w.t, 2*time.Minute, "the counts are complete", func() (bool, string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.whole, fmt.Sprintf("%+v: %v", w.now, w.most)
	})
}

// awaitAsked waits until some more questions were answered.
func (w *watching) awaitAsked(more int) {
	w.t.Helper()
	w.mu.Lock()
	want := w.asked + more
	w.mu.Unlock()
	testkit.Eventually(w.t, time.Minute, "questions are answered", func() (bool, string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.asked >= want, fmt.Sprint(w.asked)
	})
}

// While definitions change in every way, a count never has less than before, but for what its window no longer has, and
// says truly since when it is complete; with backfills, interrupted ones among them, and without.
func TestCountsNeverFallWhileDefinitionsChange(t *testing.T) {
	t.Parallel()
	streams := filepath.Join(t.TempDir(), "streams.yaml")
	if err := os.WriteFile(streams, []byte(`
streams:
  payment:
    topic: transactions
    timestamp: {path: timestamp, unit: ms}
    id: event_id
    fields: {user_id: string, event_id: string, amount: {type: decimal, scale: 2}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"auto", "off"} {
		t.Run("backfill "+mode, func(t *testing.T) {
			server := redistest.New(t, redistest.Options{})
			s := newScene(t, server.Client(t), "--redis.addresses", server.Addr(), "--backfill.mode", mode, "--backfill.rate", "0.05")
			began := time.Now()
			n := 0
			event := func(user string, at time.Time) generate.Event {
				n++
				text := fmt.Appendf(nil, `{"event_id":"e%d","timestamp":%d,"user_id":%q,"amount":1.50}`, n, at.UnixMilli(), user)
				return generate.Event{Topic: generate.Transactions, Key: []byte(user), Value: text, Timestamp: at.UnixMilli()}
			}
			put := func(events ...generate.Event) {
				if _, err := s.producer.write(events); err != nil {
					t.Error(err)
				}
			}
			for _, a := range ages {
				var events []generate.Event
				for i := range fewer(4000) {
					at := began.Add(-a.age).Add(time.Duration(i) * time.Millisecond)
					if events = append(events, event(fmt.Sprint("other", i%300), at)); i < a.n {
						events = append(events, event("u1", at))
					}
				}
				put(events...)
			}
			now := counted{tiled: time.Hour, tile: 5 * time.Minute, logged: time.Hour, max: 10_000, met: 50}
			start := func(role string) *defined { return s.startWith([]string{streams}, role, now.text()) }
			api := start("api")
			first, second := start("processor"), start("processor")
			testkit.Eventually(t, time.Minute, "all events are applied", func() (bool, string) {
				reply := queryUser(t, api.weir, question{Features: []string{"reference"}, At: time.Now().UnixMilli()})
				got := string(reply.Results[0].Features["reference"].Value)
				return got == fmt.Sprint(since(20*24*time.Hour)), got
			})
			w := watch(t, api.url, began, now)
			defer w.stop()
			over := make(chan struct{})
			var writing sync.WaitGroup
			defer writing.Wait()
			defer close(over)
			writing.Go(func() {
				ticker := time.NewTicker(100 * time.Millisecond)
				defer ticker.Stop()
				for {
					select {
					case <-ticker.C:
						put(event("u1", time.Now().Add(-time.Minute))) // before the moment of a question, whenever that is answered
					case <-over:
						return
					}
				}
			})
			w.awaitWhole()
			take := func(what string, change func(c *counted), order ...*defined) {
				next := now
				change(&next)
				w.changing(next)
				now = next
				for _, d := range order {
					d.take(t, now.text())
				}
				w.awaitAsked(50)
				t.Logf("%s: %+v, after %v", what, now, time.Since(began).Round(time.Millisecond))
			}
			filled := func() {
				if mode == "auto" {
					w.awaitWhole()
				}
			}
			window := func(d, tile time.Duration) func(*counted) {
				return func(c *counted) { c.tiled, c.tile, c.logged = d, tile, d }
			}
			take("longer", window(2*time.Hour, 5*time.Minute), api, first, second)
			filled()
			take("longer, in wider tiles, the processors first", window(24*time.Hour, time.Hour), first, second, api)
			take("and back", window(2*time.Hour, 5*time.Minute), api, first, second)
			take("and forth", window(24*time.Hour, 5*time.Minute), second, api, first)
			filled()
			take("in wider tiles", window(24*time.Hour, time.Hour), api, first, second)
			filled()
			take("and back again, once it is filled", window(2*time.Hour, 15*time.Minute), api, first, second)
			take("and forth again", window(24*time.Hour, 4*time.Hour), api, first, second)
			take("caps are raised", func(c *counted) { c.max, c.met = 20_000, 100 }, api, first, second)
			filled()
			take("a column comes", func(c *counted) { c.more = "  sum: SUM(1h, payment, amount, user_id, tile=exact, max=20000)\n" }, api, first, second)
			take("and goes before it is filled", func(c *counted) { c.more = "" }, api, first, second)
			take("and comes again, in a longer window", func(c *counted) {
				c.tiled, c.tile, c.logged, c.more = 48*time.Hour, 6*time.Hour, 48*time.Hour, "  sum: SUM(1h, payment, amount, user_id, tile=exact, max=20000)\n"
			}, api, first)
			s.kill(first)
			second.take(t, now.text())
			first = start("processor")
			w.awaitAsked(50)
			filled()
			take("caps are lowered, and the window is shorter", func(c *counted) {
				c.tiled, c.tile, c.logged, c.max, c.met = time.Hour, 5*time.Minute, 2*time.Hour, 10_000, 50
			}, first, api, second)
			w.mu.Lock()
			t.Logf("%d questions", w.asked)
			w.mu.Unlock()
		})
	}
}
