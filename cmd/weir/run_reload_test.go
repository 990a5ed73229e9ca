package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
)

// A process loads changed definitions: its answers, readiness and metrics show them, and a broken
// file changes nothing.
func TestRunReloadsDefinitions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "features.yaml")
	rewrite(t, file, oneFeature)
	flags, _ := servers(t, map[string]int{"logins": 2, "weir.dead-letters": 1})
	flags[1] = file // the shipped ones need another topic
	p := start(t, append([]string{"run"}, flags...)...)
	base := p.address(t)
	ready(t, base)
	asked := func(name string, want int) {
		t.Helper()
		testkit.Eventually(t, patience, name, func() (bool, string) {
			code, body := statusOf(t, base+"/v1/features/"+name+"?user_id=u1")
			return code == want, body
		})
	}
	asked("two", 404)
	rewrite(t, file, twoFeatures)
	asked("two", 200)
	rewrite(t, file, strings.Replace(twoFeatures, "topic: logins", "topic: others", 1))
	p.shows(t, "no topic others: create it, or set kafka.create_topics; with ACLs, allow Describe on it")
	asked("two", 200)
	if code, body := statusOf(t, base+"/readyz"); code != 200 || !strings.Contains(body, `"loaded":false,"error":"no topic others: create it, or set kafka.create_topics; with ACLs, allow Describe on it"`) {
		t.Errorf("/readyz: got %d %s, want 200 and the refused reload", code, body)
	}
	rewrite(t, file, noStream)
	p.shows(t, "no stream is defined")
	rewrite(t, file, badFeatures)
	p.shows(t, file+":4:25:")
	rewrite(t, file, oneFeature)
	asked("two", 404)
	if _, body := statusOf(t, base+"/metrics"); !strings.Contains(body, `weir_definitions_reloads_total{outcome="refused"} 3`) ||
		!strings.Contains(body, `weir_definitions_reloads_total{outcome="loaded"} 2`) || strings.Count(body, "weir_definitions_info{") != 1 {
		t.Errorf("the metrics do not count the reloads:\n%s", body)
	}
}

const (
	noStream    = "macros:\n  M_SAME(part): {expr: part}\n"
	oneStream   = "streams:\n  login: {topic: logins, timestamp: {path: t, unit: ms}, fields: {user_id: string}}\nfeatures:\n"
	oneFeature  = oneStream + "  one: COUNT(7d, login, user_id)\n"
	twoFeatures = oneStream + "  one: COUNT(7d, login, user_id)\n  two: COUNT(1d, login, user_id)\n"
	badFeatures = oneStream + "  one: COUNT(7d, login, device)\n  two: CONT(1d, login, user_id)\n"
)

func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
