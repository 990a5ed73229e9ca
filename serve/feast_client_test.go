package serve

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
)

// feastPython is a Python that has Feast: that of WEIR_TEST_FEAST, or the one
// in the path if it has.
func feastPython(t *testing.T) string {
	if python := os.Getenv("WEIR_TEST_FEAST"); python != "" {
		return python
	}
	const has = "import importlib.util, sys; sys.exit(importlib.util.find_spec('feast') is None)"
	if err := exec.Command("python3", "-c", has).Run(); err != nil {
		t.Skip("no Python with Feast: set WEIR_TEST_FEAST to one, such as venv/bin/python after `pip install feast`")
	}
	return "python3"
}

// Feast's own client gets what Weir has.
func TestFeastClient(t *testing.T) {
	python := feastPython(t)
	server := httptest.NewServer(newHandler(&fakeReader{slices: stored()}, func(c *Config) {
		r := registry()
		r.Services = append(r.Services, &features.Service{Name: "device_risk", Features: r.Services[0].Features[1:]})
		c.Registry = func() *features.Registry { return r }
	}))
	defer server.Close()
	client := exec.CommandContext(t.Context(), python, "testdata/feast_client.py", server.URL)
	client.Env = append(os.Environ(), "FEAST_USAGE=false", "PYTHONWARNINGS=ignore")
	var complaints strings.Builder
	client.Stderr = &complaints
	got, err := client.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	want := []string{
		`{"device_id": ["d1", "nobody"], "device_tx_7d": [3, 0], "device_amount_7d": [166.6, 0]}`,
		`{"device_id": ["d1", "nobody"], "device_stats__device_tx_7d": [3, 0], "device_stats__device_amount_7d": [166.6, 0]}`,
		`{"device_id": ["d1", "nobody"], "device_tx_7d": [3, 0], "device_amount_7d": [166.6, 0]}`,
		`[["2018-07-25T12:00:00+00:00", {"device_tx_7d": "int64_val: 3", "device_amount_7d": "double_val: 166.6"}], ` +
			`["2018-07-25T12:00:00+00:00", {"device_tx_7d": "", "device_amount_7d": ""}]]`, // what is not found has no value there
		`{"raised": "FeatureViewNotFoundException", "says": "there is no feature \"device_tx_8d\"; did you mean \"device_tx_7d\"?"}`,
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(got)), "\n")); diff != "" {
		t.Errorf("what Feast's client gets (-want +got):\n%s\n%s", diff, complaints.String())
	}
}
