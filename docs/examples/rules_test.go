package examples_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
)

// patience bounds how long a rule engine under test waits for an answer: longer than a customer
// would, because the machine may be busy.
const patience = 30 * time.Second

// ruleEngine is an example: it decides about payments with the features of the Weir at an address,
// if that answers in time, and returns decisions as lines of JSON.
type ruleEngine func(t *testing.T, weir string, timeout time.Duration, payments []byte) (decisions []byte)

// decideAll compares a rule engine's decisions with the expected ones, which are the same for all
// engines, with and without Weir.
func decideAll(t *testing.T, decide ruleEngine) {
	const folder = "payments"
	r := load(t, folder)
	held := replay(t, r, read(t, folder, "events.ndjson"))
	payments := read(t, folder, "payments.ndjson")
	weir := httptest.NewServer(api(r, held, time.Date(2026, 3, 2, 10, 10, 0, 0, time.UTC)))
	defer weir.Close()
	fewer := load(t, folder)
	fewer.Services[0].Features = slices.DeleteFunc(fewer.Services[0].Features, func(f *features.Feature) bool { return f.Name == "user_usual_amount_30d" })
	lacking := httptest.NewServer(api(fewer, held, time.Date(2026, 3, 2, 10, 10, 0, 0, time.UTC)))
	defer lacking.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	ended := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	defer silent.Close()
	defer close(ended)
	for _, c := range []struct {
		about, weir string
		timeout     time.Duration
		want        string
	}{
		{"with features", weir.URL, patience, "decisions.ndjson"},
		{"without one of the features", lacking.URL, patience, "decisions_lacking.ndjson"},
		{"without a server", gone.URL, patience, "decisions_unanswered.ndjson"},
		{"without an answer in time", silent.URL, 20 * time.Millisecond, "decisions_unanswered.ndjson"},
	} {
		t.Run(c.about, func(t *testing.T) {
			got := decide(t, c.weir, c.timeout, payments)
			if diff := cmp.Diff(decodeLines(t, read(t, folder, c.want)), decodeLines(t, got)); diff != "" {
				t.Errorf("%s\n%s (-want +got):\n%s", got, c.want, diff)
			}
		})
	}
}

func decodeLines(t *testing.T, text []byte) (values []any) {
	t.Helper()
	for line := range bytes.Lines(text) {
		values = append(values, decode(t, string(line)))
	}
	return values
}

func TestGoRules(t *testing.T) {
	program := filepath.Join(t.TempDir(), "go-rules")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "go-rules" // a module of its own
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	decideAll(t, func(t *testing.T, weir string, timeout time.Duration, payments []byte) []byte {
		return run(t, payments, nil, program, "--weir", weir, "--timeout", timeout.String(), "--rules", "go-rules/rules.yaml")
	})
}

func TestJavaRules(t *testing.T) {
	const project = "../../clients/java"
	maven := testkit.Command(t, "mvn", "Maven and a JDK, such as with `apt-get install maven default-jdk-headless`")
	run(t, nil, nil, maven, "--quiet", "--batch-mode", "--file", project, "package", "-DskipTests")
	decideAll(t, func(t *testing.T, weir string, timeout time.Duration, payments []byte) []byte {
		return run(t, payments, nil, "java", "-jar", project+"/example/target/payments.jar", weir, strconv.FormatInt(timeout.Milliseconds(), 10))
	})
}

func TestOPA(t *testing.T) {
	opa := findOPA(t)
	decideAll(t, func(t *testing.T, weir string, timeout time.Duration, payments []byte) (decisions []byte) {
		env := []string{"WEIR_URL=" + weir, "WEIR_TIMEOUT=" + timeout.String()}
		for payment := range bytes.Lines(payments) {
			decisions = append(decisions, run(t, payment, env, opa,
				"eval", "--data", "opa/policy.rego", "--stdin-input", "--format", "raw", "data.payments.decide")...)
		}
		return decisions
	})
}

// The policy passes the checks of OPA's own tools, and its tests, which need no Weir.
func TestPolicy(t *testing.T) {
	opa := findOPA(t)
	run(t, nil, nil, opa, "fmt", "--fail", "opa")
	run(t, nil, nil, opa, "check", "--strict", "opa")
	var result []struct{ Name string }
	if err := json.Unmarshal(run(t, nil, nil, opa, "test", "--format", "json", "opa"), &result); err != nil || len(result) < 10 {
		t.Errorf("%d tests were run, want at least 10; error %v", len(result), err)
	}
}

func findOPA(t *testing.T) string {
	t.Helper()
	return testkit.Command(t, "opa", "it, such as with `go install github.com/open-policy-agent/opa@latest`")
}

// run runs a program and returns its output.
func run(t *testing.T, input []byte, env []string, program string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	var complaints strings.Builder
	command.Stdin, command.Stderr, command.Env = bytes.NewReader(input), &complaints, append(os.Environ(), env...)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), args[0], err, out, complaints.String())
	}
	return out
}
