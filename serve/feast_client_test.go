package serve

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// program is the path of a program in Python that asks the server: that of a variable, or the one on PATH. It uses a
// single goroutine, so the race detector would only make it slow.
func program(t *testing.T, variable, name string) string {
	t.Helper()
	if testkit.Race {
		t.Skip("runs without the race detector")
	}
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return testkit.Command(t, name, "what .ci/requirements.txt names into a Python, or set "+variable)
}

const feastDefinitions = `
streams:
  transaction: {topic: transactions, timestamp: at, fields: {device_id: string, amount: {type: decimal, scale: 2}}}
features:
  device_tx_7d: COUNT(7d, transaction, device_id)
  device_amount_7d: SUM(7d, transaction, amount, device_id)
services:
  device_risk: [device_tx_7d, device_amount_7d]
`

// Feast's own client gets Weir's answers, and skips what Feast's server does not send.
func TestFeastClient(t *testing.T) {
	t.Parallel()
	// Beside the program feast is the Python that has it.
	python := filepath.Join(filepath.Dir(program(t, "WEIR_TEST_FEAST", "feast")), "python")
	r := defined.Registry(t, feastDefinitions)
	stored := stored()
	read := func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		states := make([]state.WindowState, len(reads))
		for i, read := range reads {
			kept := map[state.Measure]string{state.CountEvents: "count ", state.Sum: "sum "}[read.Series.Measure]
			states[i] = stored[kept+read.Entity]
		}
		return states, nil
	}
	handler := func(epochs ...state.PlanEpoch) *httptest.Server {
		h := newHandler(&fakeReader{read: read}, func(c *setup) {
			c.Registry = func() *features.Registry { return r }
			c.Replicas = func(ctx context.Context, reads []state.Read, _ *state.Batch) ([]state.WindowState, state.Freshness, error) {
				states, err := read(ctx, reads)
				return states, state.Freshness{Replica: true, Staleness: time.Second}, err
			}
			if epochs != nil {
				c.History = func(context.Context) (*state.History, error) { return &state.History{PlanEpochs: epochs}, nil }
			}
		})
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server
	}
	whole, gap := handler(), handler(state.PlanEpoch{Topic: "transactions", Version: state.Gap, Last: noon.UnixMilli()})
	answer := do(t, gap.Config.Handler, "POST", feastPath, `{"features": ["device_tx_7d"], "entities": {"device_id": ["d1"]}}`).Body.String()
	if !strings.Contains(answer, `"staleness_ms":1000}`) || !strings.Contains(answer, `"complete_since":[`) {
		t.Fatalf("the answer has no fields that Feast's client must skip: %s", answer)
	}
	client := exec.CommandContext(t.Context(), python, "testdata/feast_client.py", whole.URL, gap.URL)
	client.Env = append(os.Environ(), "FEAST_USAGE=false", "PYTHONWARNINGS=ignore")
	var complaints strings.Builder
	client.Stderr = &complaints
	got, err := client.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	answers := func(listed, tx, amount string) []string {
		return []string{
			`{"device_id": ["d1", "nobody"], ` + listed + `}`,
			`{"device_id": ["d1", "nobody"], ` + strings.ReplaceAll(listed, `"device_`, `"device_stats__device_`) + `}`,
			`{"device_id": ["d1", "nobody"], ` + listed + `}`,
			`[["2018-07-25T12:00:00+00:00", {"device_tx_7d": "` + tx + `", "device_amount_7d": "` + amount + `"}], ` +
				`["2018-07-25T12:00:00+00:00", {"device_tx_7d": "", "device_amount_7d": ""}]]`, // Feast has no value for what is not found
			`{"raised": "FeatureViewNotFoundException", "says": "there is no feature \"device_tx_8d\"; did you mean \"device_tx_7d\"?"}`,
		}
	}
	// For Feast an incomplete value is outside its max age, and its providers then return none. Its dictionaries show
	// values without statuses, so it must not be sent.
	want := append(answers(`"device_tx_7d": [3, 0], "device_amount_7d": [166.6, 0]`, "int64_val: 3", "double_val: 166.6"),
		answers(`"device_tx_7d": [null, null], "device_amount_7d": [null, null]`, "", "")...)
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(got)), "\n")); diff != "" {
		t.Errorf("what Feast's client gets (-want +got):\n%s\n%s", diff, complaints.String())
	}
}
