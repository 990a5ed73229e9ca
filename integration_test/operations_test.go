package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// runWeir runs a command of the binary to its end.
func runWeir(t testing.TB, args ...string) (out string, code int) {
	t.Helper()
	text, err := exec.Command(binary, args...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return string(text), code
}

// promised are the metrics that every process with both roles has after an event, a dead letter and
// a question.
var promised = []string{
	"weir_events_total", "weir_dead_letters_total", "weir_refused_mutations_total", "weir_batches_total",
	"weir_batch_events_count", "weir_apply_seconds_bucket", "weir_freshness_seconds_bucket", "weir_lag_records",
	"weir_assigned_partitions", "weir_question_duration_seconds_bucket", "weir_question_values_sum",
	"weir_question_features_total", "weir_questions_in_flight", "go_goroutines", "process_resident_memory_bytes",
}

// The test checks what operators see and do, on one process with both roles.
func TestOperations(t *testing.T) {
	t.Parallel()
	const events = 3000
	server := redistest.New(t, redistest.Options{AOF: true})
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	check := func() (string, int) { return runWeir(t, slices.Concat([]string{"run", "--check"}, s.settings)...) }
	matches := func(t *testing.T, text string, patterns ...string) {
		t.Helper()
		for _, p := range patterns {
			if !regexp.MustCompile("(?m)" + p).MatchString(text) {
				t.Errorf("no line matches %s in:\n%s", p, text)
			}
		}
	}

	t.Run("check without failures", func(t *testing.T) {
		out, code := check()
		if code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		matches(t, out, `^ok +settings +namespace `+s.group, `^ok +features +\d+ features`, `^ok +kafka +1 broker$`,
			`^ok +topic transactions +4 partitions$`, `^ok +redis +version `, `^ok +layout `)
	})

	w := s.start("processor,api", "--kafka.session_timeout", "1m") // what is read again after a rebalance may count less
	s.flow(generate.New(seed, stream(50)), events)
	s.awaitApplied()
	w.awaitReady()

	s.checkDeadLetters()
	t.Run("dead letters", func(t *testing.T) {
		for place, letter := range readDead(t, s.broker, s.poison) {
			if header(letter, "weir-reason") == "" || header(letter, "weir-message") == "" || len(letter.Value) == 0 {
				t.Errorf("the dead letter of %s lacks a reason, a message or the record: %v", place, letter.Headers)
			}
		}
	})

	t.Run("query", func(t *testing.T) {
		f, _ := s.registry.Feature("user_tx_lifetime")
		user := s.model.Entities(f)[0]
		answer := s.model.Answer(f, user, 0)
		want := string(answer.Value.AppendText(nil))
		out, code := runWeir(t, "query", "--address", w.url, "user_tx_lifetime", "user_id="+user)
		if code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		matches(t, out, `^ENTITY +FEATURE +VALUE +STATUS`, `^user_id=`+user+` +user_tx_lifetime +`+want+` +PRESENT `)
		out, code = runWeir(t, "query", "--address", w.url, "user_tx_lifetimes", "user_id="+user)
		if code != 1 || !strings.Contains(out, `"user_tx_lifetimes"`) {
			t.Errorf("a missing feature: exit code %d, want 1 and a suggestion: %s", code, out)
		}
	})

	t.Run("metrics", func(t *testing.T) {
		_, text := w.get("/metrics")
		for _, name := range promised {
			matches(t, text, "^"+name+`[{ ]`)
		}
		// Every record in the log was read once, except aborted ones.
		dead := w.metric("weir_events_total", `outcome="dead"`)
		if n := w.metric("weir_events_total", ""); n != events || dead != float64(len(s.poison)) {
			t.Errorf("%v events and %v dead letters, want %d and %d", n, dead, events, len(s.poison))
		}
		testkit.Eventually(t, time.Minute, "no lag, as everything is applied", func() (bool, string) { // as of the last look at the log
			lag := w.metric("weir_lag_records", "")
			return lag == 0, fmt.Sprint(lag)
		})
	})

	t.Run("Redis unavailable", func(t *testing.T) {
		server.Kill()
		body := w.awaitStatus("/readyz", http.StatusServiceUnavailable)
		var readiness struct {
			Checks []struct {
				Name  string
				Ready bool
				Error string
			}
		}
		if err := json.Unmarshal([]byte(body), &readiness); err != nil || readiness.Checks[0].Name != "redis" ||
			readiness.Checks[0].Ready || readiness.Checks[0].Error == "" {
			t.Errorf("readiness without Redis does not report Redis: %s", body)
		}
		if status, _ := w.get("/healthz"); status != http.StatusOK {
			t.Errorf("without Redis /healthz answers %d, want 200: the process would be killed", status)
		}
		if status, body := w.get("/v1/features/user_tx_lifetime?user_id=u000001"); status != http.StatusServiceUnavailable ||
			!strings.Contains(body, "store_unavailable") {
			t.Errorf("a question without Redis: got %d %s, want 503", status, body)
		}
		out, code := check()
		if code != 1 {
			t.Errorf("--check without Redis: exit code %d, want 1", code)
		}
		matches(t, out, `^FAIL +redis +`+server.Addr()+`: `, `^weir: 1 check failed$`)
		server.Start()
		w.awaitReady()
	})
}

// On SIGTERM a processor flushes, commits and leaves the group: the committed offsets are those
// applied, and the next processor continues at once.
func TestShutdown(t *testing.T) {
	t.Parallel()
	const session = 5 * time.Minute // longer than anything is waited for
	events := fewer(40_000)
	server := redistest.New(t, redistest.Options{})
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	api := s.start("api")
	// Commits are rare, so that the last ones show.
	patient := []string{"--kafka.session_timeout", session.String(), "--processor.commit_interval", "1m"}
	w := s.start("processor", patient...)
	s.flow(generate.New(seed, stream(100)), events, fault{"a processor is asked to end", func() {
		testkit.Eventually(t, time.Minute, "events are applied", func() (bool, string) {
			return w.metric("weir_events_total", "") > float64(events/10), w.Log()
		})
		began := time.Now()
		w.Stop()
		// It has processor.shutdown_timeout, 20 s, and what a busy machine adds.
		if took := time.Since(began); w.ExitCode() != 0 || took > time.Minute {
			t.Errorf("exit code %d after %v; want 0 within a minute", w.ExitCode(), took)
		}
		offsets, err := committed(s.kafka, s.group)
		if err != nil {
			t.Fatal(err)
		}
		progress, err := s.store.Progress(ctx, partitions())
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range partitions() {
			if low, high := state.Lowest(progress[i]), state.Highest(progress[i]); low != high || offsets[p] != low || low == 0 {
				t.Errorf("%v: shards have applied up to %d to %d, committed is %d; want one offset", p, low, high, offsets[p])
			}
		}
		awaitShared(t, s.start("processor")) // in vain, if the previous one has not left the group
	}})
	s.finish(api, events)
}
