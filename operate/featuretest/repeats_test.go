package featuretest

import (
	"os"
	"path/filepath"
	"testing"
)

// An event that comes again counts once, by when the two came.
func TestRepeatedEvents(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"definitions.yaml": `
streams:
  pay: {topic: payments, timestamp: {path: at, unit: datetime}, id: id, dedup: 1m, fields: {user: string}}
features:
  pays: COUNT(lifetime, pay, user)
`,
		"some_test.yaml": `
tests:
  - name: t
    events:
      - pay: {at: 1m, id: a, user: u}
      - pay: {at: 1m, came: 2m, id: a, user: u}
      - pay: {at: 1m, id: b, user: u}
      - pay: {at: 1m, user: u}
      - pay: {at: 1m, user: u}
      - pay: {at: 1m, came: 181s, id: a, user: u}
    questions:
      - {at: 1m, entity: {user: u}, expect: {pays: 4}}
      - {at: 3m, entity: {user: u}, expect: {pays: 4}}
      - {at: 4m, entity: {user: u}, expect: {pays: 5}}
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Run(t.Context(), filepath.Join(folder, "some_test.yaml"))
	if err != nil || len(r.Tests[0].Failures) > 0 || r.Tests[0].Values != 3 {
		t.Errorf("error %v, got %+v; want three values without a failure", err, r)
	}
}
