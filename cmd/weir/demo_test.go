package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/generate"
)

func TestDemoAccountsForEveryEvent(t *testing.T) {
	const n = 5000
	p := start(t, "demo", "--listen", "127.0.0.1:0", "--events", "5000", "--seed", "3", "--exit")
	if err := p.wait(t); err != nil {
		t.Fatalf("%v\n%s", err, p.err.String())
	}
	var got struct {
		Events, Applied, Dead int64
		Seconds               float64
	}
	out := p.out.String()
	if err := json.Unmarshal([]byte(out), &got); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("printed %q: %v", out, err)
	}
	if got.Events != n || got.Applied != n || got.Dead != 0 || got.Seconds <= 0 {
		t.Errorf("printed %s, want all of the %d events applied", out, n)
	}
}

func TestDemoAnswersWhatItAsks(t *testing.T) {
	p := start(t, "demo", "--listen", "127.0.0.1:0", "--seed", "3")
	p.shows(t, "all there is to ask for")
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	text := p.err.String()
	for _, want := range []string{"  curl 'http://127.0.0.1:", "?card_id=" + firstCard(3) + "'\n", `"status":"PRESENT"`, "  weir query --address ", " device_tx_7d "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// The demo makes events only of the topics that the definitions read.
func TestDemoOfOtherDefinitions(t *testing.T) {
	for _, test := range []struct{ topic, error string }{
		{"transactions", ""},
		{"logins", ""},
		{"orders", "the definitions read the topics orders; the demo makes events of transactions and logins only: name one of them, or use weir run"},
	} {
		t.Run(test.topic, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "features.yaml")
			definitions := "streams: {s: {topic: " + test.topic + ", timestamp: timestamp, fields: {user_id: string}}}\nfeatures: {n: 'COUNT(1d, s, user_id)'}\n"
			if err := os.WriteFile(file, []byte(definitions), 0o600); err != nil {
				t.Fatal(err)
			}
			p := start(t, "demo", "--listen", "127.0.0.1:0", "--features", file, "--events", "200", "--exit")
			err := p.wait(t)
			if test.error == "" && err != nil {
				t.Errorf("%v\n%s", err, p.err.String())
			}
			if test.error != "" && (err == nil || err.Error() != test.error) {
				t.Errorf("error %v, want %s", err, test.error)
			}
		})
	}
}

// firstCard is the first card used in the events of a seed.
func firstCard(seed uint64) string {
	for events := generate.New(seed, generate.Demo()); ; {
		var event struct {
			Card string `json:"card_id"`
		}
		if json.Unmarshal(events.Next().Value, &event) == nil && event.Card != "" {
			return event.Card
		}
	}
}
