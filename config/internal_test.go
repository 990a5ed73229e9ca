package config

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestReferenceNamesEverySettingAndExplainsIt(t *testing.T) {
	d := readDocument("weir.yaml", reference)
	if len(d.findings) > 0 {
		t.Fatal(d.findings)
	}
	for _, key := range keys {
		if _, ok := d.values[key]; !ok {
			t.Errorf("weir.yaml does not name %s", key)
		}
		if d.comments[key] == "" {
			t.Errorf("weir.yaml does not say what %s does", key)
		}
	}
}

func TestEveryRuleIsTried(t *testing.T) {
	source, err := os.ReadFile("bad_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !slices.Contains(keys, r.key) {
			t.Errorf("there is a rule for %s, which is not a setting", r.key)
		}
		if !strings.Contains(string(source), "`"+r.key+" ") || !strings.Contains(string(source), "is not allowed: "+r.allowed+"`") {
			t.Errorf("no bad file breaks the rule of %s", r.key)
		}
	}
}
