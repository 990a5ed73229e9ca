package integration_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// added are features that processes load while they run: new series in tiles and as a set, a log
// with new columns, an existing series with a longer keep, and others.
const added = `
features:
  new_tx_1h: COUNT(1h, transaction, user_id, where='amount > 5', keep=10d)
  new_merchants_1d: COUNT_DISTINCT(1d, transaction, device_id, merchant_id, keep=5d)
  new_exact_2h: SUM(2h, transaction, amount, user_id, tile=exact, where='status == "approved"', max=100000, keep=10d)
  new_active: ACTIVE(1d, login, user_id, unit=30m, tile=exact, max=100000, keep=5d)
  device_tx_9d: COUNT(9d, transaction, device_id)
  new_ratio: {expr: new_tx_1h / user_tx_lifetime, default: 0}
  new_lifetime: COUNT(lifetime, transaction, merchant_id, where='amount > 5')
`

// defined is a process whose definitions can be changed.
type defined struct {
	*weir
	file string
}

// startDefined starts a process with the scene's definitions and one more file.
func (s *scene) startDefined(role, text string) *defined {
	s.t.Helper()
	return s.startWith(definitions(s.t), role, text)
}

// startWith starts a process with definitions and one more file.
func (s *scene) startWith(paths []string, role, text string, more ...string) *defined {
	s.t.Helper()
	d := &defined{file: filepath.Join(s.t.TempDir(), "more.yaml")}
	d.put(s.t, text)
	d.weir = s.start(role, append([]string{"--features", strings.Join(append(slices.Clone(paths), d.file), ",")}, more...)...)
	return d
}

// put replaces the process's file atomically, as careful editors do.
func (d *defined) put(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(d.file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.file+".new", d.file); err != nil {
		t.Fatal(err)
	}
}

// take changes the process's definitions, and waits until it has loaded them.
func (d *defined) take(t testing.TB, text string) {
	t.Helper()
	taken := strings.Count(d.Log(), "definitions loaded")
	d.put(t, text)
	testkit.Eventually(t, time.Minute, "the definitions are taken", func() (bool, string) {
		return strings.Count(d.Log(), "definitions loaded") > taken, d.Log()
	})
}

// since returns the complete_since of a user's feature; ok reports whether it lies before the end
// of the answer's coverage.
func (s *scene) since(api *weir, feature string) (since int64, ok bool) {
	s.t.Helper()
	answers, err := api.ask(question{Features: []string{feature}, Entities: []json.RawMessage{json.RawMessage(`{"user_id":"u000001"}`)}, At: time.Now().UnixMilli()})
	if err != nil {
		s.t.Fatal(err)
	}
	a := answers[0][feature]
	if a.CompleteSince == nil {
		s.t.Fatalf("%s has no complete_since", feature)
	}
	return *a.CompleteSince, *a.CompleteSince < a.To
}

func (s *scene) awaitComplete(api *weir, want bool) (since int64) {
	s.t.Helper()
	testkit.Eventually(s.t, time.Minute, fmt.Sprintf("new features are complete from some time on: %v", want), func() (bool, string) {
		var ok bool
		since, ok = s.since(api, "new_tx_1h")
		return ok == want, fmt.Sprint(since)
	})
	return since
}

// earlier is the model of replaced definitions.
type earlier struct {
	registry *features.Registry
	model    *model.Model
}

// apply applies a record, if there are earlier definitions. A record is poison for both models or for none.
func (e *earlier) apply(written *record.Record) {
	if e != nil {
		_ = e.model.Apply(*written)
	}
}

// answer returns the answer of a feature, if the earlier definitions have it.
func (e *earlier) answer(feature, entity string, at int64) (r aggregate.Result, has bool) {
	f, has := e.registry.Feature(feature)
	if has {
		r = e.model.Answer(f, entity, at)
	}
	return r, has
}

// newReloading makes a scene whose model has the definitions that are added while its events flow.
func newReloading(t *testing.T, flags ...string) *scene {
	server := redistest.New(t, redistest.Options{AOF: true})
	s := newScene(t, server.Client(t), append([]string{"--redis.addresses", server.Addr()}, flags...)...)
	file := filepath.Join(t.TempDir(), "more.yaml")
	if err := os.WriteFile(file, []byte(added), 0o600); err != nil {
		t.Fatal(err)
	}
	s.earlier = &earlier{s.registry, s.model}
	var err error
	if s.registry, err = definition.Load(append(definitions(t), file)...); err != nil {
		t.Fatal(err)
	}
	s.model = model.New(s.registry)
	return s
}

// firstRecord returns the least timestamp of a record in the log, in ms.
func (s *scene) firstRecord() int64 {
	first := int64(math.MaxInt64)
	for _, topic := range []string{generate.Transactions, generate.Logins} {
		for _, records := range s.readAll(topic) {
			for _, r := range records {
				first = min(first, r.Timestamp.UnixMilli())
			}
		}
	}
	return first
}

// Processors load a change at different times. One hangs with the old definitions and then continues, and another is
// replaced by a processor that still has them. No event is lost or counted twice, and new features hold every event
// since their complete_since.
func TestReload(t *testing.T) {
	t.Parallel()
	events := fewer(120_000)
	s := newReloading(t, "--backfill.mode", "off")
	const old = "features: {}\n"
	api := s.startDefined("api", old)
	first, second := s.startDefined("processor", old), s.startDefined("processor", old)

	g := generate.New(seed, stream(150))
	s.flow(g, events,
		fault{"the API takes new definitions", func() {
			awaitShared(t, first.weir, second.weir)
			api.take(t, added)
			s.awaitComplete(api.weir, false)
		}},
		fault{"a processor takes them", func() {
			first.take(t, added)
			s.awaitComplete(api.weir, false)
		}},
		fault{"a processor takes a bad file", func() {
			first.put(t, added+"  bad: COUNT(1d, transaction, nobody)\n")
			testkit.Eventually(t, time.Minute, "it is refused", func() (bool, string) {
				return strings.Contains(first.Log(), first.file+`:10:31: unknown field \"nobody\"`), first.Log()
			})
			first.take(t, added)
		}},
		fault{"the one with the old definitions hangs", func() {
			second.Pause()
			awaitShared(t, first.weir)
			s.awaitComplete(api.weir, true)
		}},
		fault{"it wakes up, and takes part", func() {
			second.Resume()
			awaitShared(t, first.weir, second.weir)
			s.awaitComplete(api.weir, false)
		}},
		fault{"it takes the new definitions", func() {
			second.take(t, added)
			s.awaitComplete(api.weir, true)
		}},
		fault{"the other is killed, and replaced by one with the old", func() {
			s.kill(first)
			first = s.startDefined("processor", old)
			awaitShared(t, first.weir, second.weir)
			s.awaitComplete(api.weir, false)
		}},
		fault{"which takes the new definitions", func() {
			first.take(t, added)
			s.awaitComplete(api.weir, true)
		}},
	)
	s.awaitApplied()
	since := s.awaitComplete(api.weir, true)
	if since > s.clock+hour {
		t.Errorf("complete since %d, more than an hour after the last record, %d", since, s.clock)
	}
	c := blackbox.Comparison{T: t, URL: api.url, Model: s.model, Partly: true, Earlier: s.earlier.answer}
	c.All(s.registry, s.clock, slices.Concat(moments(s.clock), []int64{since + 2*hour, since + day, since + 3*day})...)
	s.checkDeadLetters()
	for _, f := range s.registry.Features {
		isNew := strings.HasPrefix(f.Name, "new_") || f.Name == "device_tx_9d"
		switch n := c.Incomplete[f.Name]; {
		case !isNew && n > 0:
			t.Errorf("%s, which was always kept, is complete only since %d in %d answers", f.Name, c.Since[f.Name], n)
		case isNew && n == 0:
			t.Errorf("%s never says that something is missing", f.Name)
		case f.Name == "new_tx_1h" || f.Name == "new_exact_2h" || f.Name == "new_merchants_1d" || f.Name == "new_active":
			if c.Complete[f.Name] == 0 {
				t.Errorf("%s, complete since %d, was never compared", f.Name, c.Since[f.Name])
			}
		}
	}
	t.Logf("%d answers compared, of new features %v; passed over %v, and %v under earlier caps; complete since %v of %d", c.Compared, c.Complete, c.Incomplete, c.Capped, c.Since, s.clock)
}

// The same changes, while processors fill new features: in the end every feature is complete, and has every event of
// the log once.
func TestReloadWithBackfill(t *testing.T) {
	t.Parallel()
	s := newReloading(t, "--backfill.rate", "0.2")
	const old = "features: {}\n"
	api := s.startDefined("api", old)
	first, second := s.startDefined("processor", old), s.startDefined("processor", old)
	s.flow(generate.New(seed, stream(150)), fewer(40_000),
		fault{"a processor takes new definitions, and begins to fill", func() {
			awaitShared(t, first.weir, second.weir)
			api.take(t, added)
			first.take(t, added)
			s.awaitFilling("it is known", func(*state.FillEpoch) bool { return true })
		}},
		fault{"the one with the old definitions hangs", func() {
			second.Pause()
			awaitShared(t, first.weir)
		}},
		fault{"it wakes up, and takes part with the old ones", func() {
			second.Resume()
			awaitShared(t, first.weir, second.weir)
		}},
		fault{"it takes the new definitions", func() { second.take(t, added) }},
		fault{"the other is killed, and replaced by one with the old", func() {
			s.kill(first)
			first = s.startDefined("processor", old)
			awaitShared(t, first.weir, second.weir)
		}},
		fault{"which takes the new definitions", func() { first.take(t, added) }},
	)
	s.awaitApplied()
	testkit.Eventually(t, 3*time.Minute, "all features are complete", func() (bool, string) {
		now := blackbox.Comparison{T: t, URL: api.url, Model: s.model, Partly: true, Earlier: s.earlier.answer}
		now.All(s.registry, s.clock, s.clock)
		return len(now.Incomplete)+len(now.Capped) == 0, fmt.Sprintf("incomplete %v, capped %v", now.Incomplete, now.Capped)
	})
	// Every answer is complete, and equal to the model's. It may state since when: a fill reads only the records that
	// windows can still reach when it begins. If the log then has older records, which depends on their speed, the
	// feature is complete since that moment, and not since the beginning. No answer reaches further back. A lifetime
	// has no beginning, so it is complete since the first record.
	c := blackbox.Comparison{T: t, URL: api.url, Model: s.model, Partly: true}
	c.All(s.registry, s.clock, moments(s.clock)...)
	if len(c.Incomplete) > 0 {
		t.Errorf("these answers are incomplete: %v", c.Incomplete)
	}
	oldest := s.firstRecord()
	for name, since := range c.Since {
		f, _ := s.registry.Feature(name)
		if !f.Forgets() || since <= oldest {
			t.Errorf("%s is complete only since %d, although the whole log was read, which begins at %d", name, since, oldest)
		}
	}
	s.checkDeadLetters()
	t.Logf("%d answers compared; %d kills; complete since %v, the log since %d", c.Compared, s.kills, c.Since, oldest)
}
