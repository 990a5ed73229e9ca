package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/config"
)

func TestSecretsAreNeverPrinted(t *testing.T) {
	c := config.Default()
	c.Redis.Password, c.Redis.SentinelPassword, c.Kafka.SASL.Password = "hunter2", "hunter2", "hunter2"
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", c.Redis)
		fmt.Fprintf(&out, verb+"\n", c.Redis.Password)
		fmt.Fprintf(&out, verb+"\n", c.Kafka.SASL)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "all", c, "one", c.Redis.Password)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "all", *c, "one", c.Redis.Password)
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(asJSON)
	out.Write(asYAML)
	if text := out.String(); strings.Contains(text, "hunter2") || strings.Contains(text, "68756e74657232") {
		t.Error("the output contains a password:", text)
	}
	if n := strings.Count(out.String(), "[redacted]"); n < 20 {
		t.Errorf("[redacted] occurs %d times, want at least 20", n)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]config.Bytes{
		"0": 0, "4096": 4096, "1B": 1, "3 KiB": 3 << 10, "1MiB": 1 << 20, "2GiB": 2 << 30,
	} {
		if got, err := config.ParseBytes(text); got != want || err != nil {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for size, want := range map[config.Bytes]string{0: "0", 1000: "1000", 4096: "4KiB", 1 << 20: "1MiB", 3 << 30: "3GiB"} {
		if got := size.String(); got != want {
			t.Errorf("%d prints as %s, want %s", int64(size), got, want)
		}
	}
}

func TestWorkerCount(t *testing.T) {
	if n := (config.Processor{Workers: 3}).WorkerCount(); n != 3 {
		t.Errorf("WorkerCount of 3 = %d", n)
	}
	if n := (config.Processor{}).WorkerCount(); n < 1 {
		t.Errorf("WorkerCount of 0 = %d, want the number of CPUs", n)
	}
}
