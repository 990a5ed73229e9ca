package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/definition"
)

const shipped = "../../config/features"

func TestValidate(t *testing.T) {
	t.Parallel()
	out, err := weir(t, "validate", shipped)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := definition.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	if want := "valid: " + say.Summary(registry) + "\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if !strings.Contains(out, " features of 2 streams in ") {
		t.Errorf("the summary does not count features and streams: %q", out)
	}
}

func TestValidateSaysFeaturesInWords(t *testing.T) {
	t.Parallel()
	out, err := weir(t, "validate", "--verbose", shipped)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(out) {
		name, meaning, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines[name] = strings.TrimSpace(meaning)
	}
	for name, want := range map[string]string{
		"device_users_30d":      "count_distinct of user_id for each device_id",
		"user_devices_30d":      "count_distinct of device_id for each user_id",
		"user_approved_part_1d": "{expr: 'user_approved_amount_1d / user_amount_1d'}",
	} {
		if lines[name] != want {
			t.Errorf("%s: %q, want %q", name, lines[name], want)
		}
	}
}

func TestValidatePrintsEveryFinding(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bad.yaml")
	text := "streams:\n  login: {topic: logins, timestamp: {path: t, unit: ms}, fields: {user_id: string}}\n" +
		"features:\n  one: COUNT(7d, login, device)\n  two: COUNT(7d, logins, user_id)\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := weir(t, "validate", file)
	if err == nil {
		t.Fatal("no error; output:", out)
	}
	lines := strings.Split(message(err), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], file+":4:") || !strings.HasPrefix(lines[1], file+":5:") {
		t.Errorf("want two findings, in lines 4 and 5; got\n%s", message(err))
	}
	if out != "" {
		t.Errorf("the standard output is %q, want nothing", out)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	out, err := weir(t, "explain", shipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"EVENT OF", "FEATURE", "device_tx_7d", "COUNT(7d, transaction, device_id)"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestExplainJSON(t *testing.T) {
	t.Parallel()
	out, err := weir(t, "explain", shipped, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var explained cost.Explanation
	if err := json.Unmarshal([]byte(out), &explained); err != nil {
		t.Fatal(err)
	}
	if len(explained.Streams) != 2 || len(explained.Features) == 0 {
		t.Errorf("%d streams and %d features are explained, want 2 streams and some features", len(explained.Streams), len(explained.Features))
	}
}

func TestExplainLoad(t *testing.T) {
	t.Parallel()
	out, err := weir(t, "explain", shipped, "--load", "events=100k/s,entities=100M")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\ntransactions  50k ", "\nRedis masters  "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	out, err = weir(t, "explain", shipped, "--load", "events=100k/s,entities=100M", "--json")
	var sizing cost.Sizing
	if err != nil || json.Unmarshal([]byte(out), &sizing) != nil || sizing.Masters < 2 || len(sizing.Topics) != 2 {
		t.Errorf("the sizing cannot be read, or lacks masters or topics: error %v, output\n%s", err, out)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	out, err := weir(t, "schema")
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile("../../docs/schema.json")
	if err != nil || out != string(made) || !json.Valid(made) {
		t.Errorf("the output is not the JSON Schema of definitions: %s", out)
	}
}
