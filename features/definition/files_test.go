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
