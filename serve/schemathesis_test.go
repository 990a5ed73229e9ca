package serve

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/weir-stream/weir/features"
)

// Requests that Schemathesis generates from /openapi.yaml are answered as the document says, and requests that violate
// it are refused.
func TestSchemathesis(t *testing.T) {
	t.Parallel()
	schemathesis := program(t, "WEIR_TEST_SCHEMATHESIS", "schemathesis")
	r := everyRegistry(t)
	server := httptest.NewServer(newHandler(clocked{everyState(t, r)}, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
	}))
	defer server.Close()
	run := exec.CommandContext(t.Context(), schemathesis, "run", server.URL+"/openapi.yaml", "--url", server.URL,
		// The document cannot list the existing features, services and keys.
		"--checks", "all", "--exclude-checks", "positive_data_acceptance",
		"--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--seed", "1", "--continue-on-failure",
		"--generation-database", "none", "--suppress-health-check", "all", "--warnings", "off")
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "NO_COLOR=1")
	if report, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, report)
	}
}
