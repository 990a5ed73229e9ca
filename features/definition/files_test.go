package definition

import (
	"os"
	"path/filepath"
	"testing"
)

// A schema file that definitions name is watched like the definitions.
func TestFingerprintOfNamedFiles(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "streams: {s: {format: {type: avro, schema: a.avsc}}}\n")
	lacking := Fingerprint(folder)
	write("a.avsc", "one")
	one := Fingerprint(folder)
	write("a.avsc", "two")
	two := Fingerprint(filepath.Join(folder, "a.yaml"))
	again := Fingerprint(filepath.Join(folder, "a.yaml"))
	write("other.avsc", "of nobody")
	if lacking == one || one == Fingerprint(folder) || two != again || two != Fingerprint(filepath.Join(folder, "a.yaml")) {
		t.Error("the fingerprint does not depend on exactly the definitions and the files that they name")
	}
}

// The name of a watched file may have spaces, with quotes or without.
func TestFingerprintOfNamesWithSpaces(t *testing.T) {
	for _, format := range []string{`{type: avro, schema: "my schemas/a b.avsc"}`, `{type: avro, schema: my schemas/a b.avsc}`, "{type: avro, schema: 'my schemas/a b.avsc'}", "\n    type: avro\n    schema: my schemas/a b.avsc"} {
		folder := t.TempDir()
		if err := os.Mkdir(filepath.Join(folder, "my schemas"), 0o700); err != nil {
			t.Fatal(err)
		}
		var prints []string
		for _, schema := range []string{"one", "two"} {
			for name, text := range map[string]string{"a.yaml": "streams:\n  s:\n    format: " + format + "\n", "my schemas/a b.avsc": schema} {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			prints = append(prints, Fingerprint(folder))
		}
		if prints[0] == prints[1] {
			t.Errorf("format %s: the fingerprint does not depend on the schema", format)
		}
	}
}
