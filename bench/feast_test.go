package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// besideFeast measures Feast's server, with a Redis of its own, in turn with Weir, and returns the
// results of both for each number of workers. WEIR_TEST_FEAST names a Python that has Feast with
// Redis; without it the result is empty.
func besideFeast(b *testing.B, weir way) (list []asked) {
	python := os.Getenv("WEIR_TEST_FEAST")
	if python == "" {
		fmt.Println("Feast is not installed")
		return nil
	}
	server := redistest.New(b, redistest.Options{})
	f := feast{python: python, repository: b.TempDir(), features: feastFeatures(b)}
	if err := os.CopyFS(f.repository, os.DirFS("feast")); err != nil { // Feast writes its registry there
		b.Fatal(err)
	}
	b.Setenv("REDIS", server.Addr())
	b.Setenv("XDG_RUNTIME_DIR", f.repository) // the control socket would be in the user's home
	b.Setenv("FEAST_USAGE", "false")
	f.run(b, "load.py", strconv.Itoa(questionUsers))
	for _, workers := range []int{1, 2, 2*runtime.NumCPU() + 1} { // the last is what Feast recommends
		list = append(list, f.measure(b, server, weir, workers)...)
	}
	return list
}

// feast is a feature repository and the Python that runs it.
type feast struct {
	python, repository string
	features           string // the features of a question, in JSON
}

// run runs a script of the repository and returns its output.
func (f *feast) run(b *testing.B, script string, args ...string) string {
	var complaints strings.Builder
	cmd := exec.CommandContext(b.Context(), f.python, append([]string{script}, args...)...)
	cmd.Dir, cmd.Stderr = f.repository, &complaints
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %v\n%s", script, err, complaints.String())
	}
	return strings.TrimSpace(string(out))
}

// feastListens matches the address and the process ID of a server in its log.
var feastListens = regexp.MustCompile(`Listening at: http://(\S+) \((\d+)\)`)

// measure starts a server, measures it and Weir, and stops it.
func (f *feast) measure(b *testing.B, store *redistest.Server, weir way, workers int) []asked {
	// By default a worker ends after a number of requests, which would break kept-alive
	// connections.
	server := testkit.Start(b, f.python, "-m", "feast.cli.cli", "--chdir", f.repository, "serve", "--port", "0",
		"--workers", strconv.Itoa(workers), "--max-requests", "0", "--no-access-log")
	b.Cleanup(server.Stop) // its workers would survive a kill
	testkit.Eventually(b, 2*time.Minute, "Feast's workers have started", func() (bool, string) {
		log := server.Log()
		return strings.Count(log, "Application startup complete") == workers, log
	})
	found := feastListens.FindStringSubmatch(server.Log())
	if found == nil {
		b.Fatalf("Feast does not log its address:\n%s", server.Log())
	}
	f.check(b, "http://"+found[1])
	a := &api{addr: found[1], free: make(chan *wire, manyAskers)}
	w := way{
		name: fmt.Sprintf("Feast, workers: %d", workers),
		ask:  func(n uint64) error { return a.post("/get-online-features", f.question(n)) }, redis: store.Client(b),
		cpu: func(b *testing.B) float64 {
			seconds, err := strconv.ParseFloat(f.run(b, "cpu.py", found[2]), 64)
			if err != nil {
				b.Fatal(err)
			}
			return seconds
		},
	}
	list := ask(b, []way{weir, w})
	a.closeIdle()
	server.Stop()
	return list
}

// check asks once and checks that the answer is complete.
func (f *feast) check(b *testing.B, url string) {
	response, err := http.Post(url+"/get-online-features", "application/json", bytes.NewReader(f.question(0)))
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	const want = 3 * (3 + 20) // keys and features of three entities
	if got := strings.Count(string(text), `"PRESENT"`); got != want {
		b.Fatalf("Feast has %d values of %d: %s", got, want, text)
	}
}

// feastFeatures returns Weir's features by their names in Feast. Feast answers a list at half the
// cost of a feature service with the same features.
func feastFeatures(b *testing.B) string {
	registry := defined.Registry(b, questionDefinitions)
	var names []string
	for _, feature := range registry.Services[0].Features {
		entity, _, _ := strings.Cut(feature.Name, "_")
		names = append(names, entity+"_stats:"+feature.Name)
	}
	text, err := json.Marshal(names)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// question returns the nth question in JSON, about the same entities as Weir's.
func (f *feast) question(n uint64) []byte {
	out := fmt.Appendf(nil, `{"features":%s,"entities":{`, f.features)
	of := entitiesOf(n)
	for i, key := range []string{"user_id", "device_id", "card_id"} {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `%q:[%q,%q,%q]`, key, of[0][i], of[1][i], of[2][i])
	}
	return append(out, "}}"...)
}
