// Package defined compiles definitions for tests.
package defined

import (
	"strings"
	"testing"

	_ "embed"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
)

// Streams defines the streams of tests of features; features can be appended.
//
//go:embed streams.yaml
var Streams string

// Parse compiles definitions, which findings say are in test.yaml.
func Parse(definitions string) (*features.Registry, error) {
	return definition.LoadFiles(features.Files{Definitions: []features.File{{Path: "test.yaml", Text: definitions}}})
}

// Registry compiles definitions without mistakes.
func Registry(t testing.TB, definitions string) *features.Registry {
	t.Helper()
	r, err := Parse(definitions)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Features compiles features over Streams, each as "name: definition".
func Features(t testing.TB, lines ...string) *features.Registry {
	t.Helper()
	return Registry(t, Streams+"  "+strings.Join(lines, "\n  ")+"\n")
}

// Feature returns the feature of that name.
func Feature(t testing.TB, r *features.Registry, name string) *features.Feature {
	t.Helper()
	f, ok := r.Feature(name)
	if !ok {
		t.Fatalf("no feature %q", name)
	}
	return f
}
