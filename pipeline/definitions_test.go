package pipeline

import (
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
)

// Definitions that mean the same replace others only if they read other files: the rows of enriched events are in these.
func TestSameDefinitionsInAnotherFolder(t *testing.T) {
	in := func(folder string) *features.Registry {
		t.Helper()
		const text = "tables: {country: {file: countries.csv, key: code, fields: {risky: bool}}}\nfeatures: {risky: {expr: country.risky}}\n"
		r, err := definition.LoadFiles(features.Files{Definitions: []features.File{{Path: folder + "/tables.yaml", Text: text}}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := in("one")
	d := newDefinitions(first, nil)
	d.replace(in("one"))
	if now, _ := d.current(); now != first {
		t.Error("equal definitions replaced others")
	}
	other := in("other")
	d.replace(other)
	if now, _ := d.current(); now != other {
		t.Error("definitions with another file did not replace those before")
	}
}
