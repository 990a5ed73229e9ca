package integration_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// weir is one process of Weir.
type weir struct {
	*testkit.Program
	t   testing.TB
	url string
}

// These are a process's questions and answers.
type (
	question = blackbox.Question
	answer   = blackbox.Answer
)

func (w *weir) ask(q question) ([]map[string]answer, error) { return blackbox.Ask(w.url, q) }

// startWeir starts a process and waits until it listens.
func startWeir(t testing.TB, args ...string) *weir {
	t.Helper()
	w := &weir{Program: testkit.Start(t, binary, append([]string{"run", "--api.listen", "127.0.0.1:0"}, args...)...), t: t}
	t.Cleanup(func() {
		if broken := blackbox.Broken(w.Log()); broken != "" {
			t.Errorf("weir %v: %s", args, broken)
		}
		if t.Failed() {
			log := w.Log()
			t.Logf("weir %v; its log ends:\n%s", args, log[max(0, len(log)-4000):])
		}
	})
	testkit.Eventually(t, server.StartTimeout, "weir listens", func() (bool, string) {
		log := w.Log()
		var ok bool
		w.url, ok = blackbox.Listening(log)
		return ok, log
	})
	return w
}

// get reads a path of the process's HTTP server; the status is 0 if it does not answer.
func (w *weir) get(path string) (status int, body string) { return blackbox.Get(w.url + path) }

// awaitReady waits until the process says that it is ready.
func (w *weir) awaitReady() {
	w.t.Helper()
	w.awaitStatus("/readyz", http.StatusOK)
}

func (w *weir) awaitStatus(path string, want int) (body string) {
	w.t.Helper()
	testkit.Eventually(w.t, time.Minute, path+" answers "+strconv.Itoa(want), func() (bool, string) {
		status, text := w.get(path)
		body = text
		return status == want, strconv.Itoa(status) + " " + text
	})
	return body
}

// metric returns the sum of a metric over its labels; a non-empty labels is a part that its lines
// must have, such as `outcome="late"`.
func (w *weir) metric(name, labels string) float64 {
	w.t.Helper()
	_, text := w.get("/metrics")
	sum, err := blackbox.Metric(text, name, labels)
	if err != nil {
		w.t.Fatal(err)
	}
	return sum
}

// awaitShared waits until these processors, and no others, own all partitions and have begun to
// read them.
func awaitShared(t testing.TB, processors ...*weir) {
	t.Helper()
	testkit.Eventually(t, 2*time.Minute, "the processors share the partitions", func() (bool, string) {
		sum, idle := 0, 0
		for _, w := range processors {
			n := int(w.metric("weir_assigned_partitions", ""))
			if sum += n; n == 0 {
				idle++
			}
		}
		return sum == len(partitions()) && idle == 0, fmt.Sprintf("%d of them are assigned; %d processors have none", sum, idle)
	})
	for _, w := range processors {
		w.awaitStatus("/readyz", http.StatusOK)
	}
}

// rewinds returns how often the process has found that the store went back in time.
func (w *weir) rewinds() int { return strings.Count(w.Log(), "the store went back in time") }
