package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/client"
)

func shipped(t *testing.T) *ruleSet {
	t.Helper()
	text, err := os.ReadFile("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// ordinary returns the features of an ordinary payment, with one of them replaced.
func ordinary(t *testing.T, name, feature string) map[string]client.Feature {
	t.Helper()
	features := map[string]client.Feature{}
	for name, text := range map[string]string{
		"device_payers_30d":     `{"value":1,"status":"PRESENT"}`,
		"user_tx_10m":           `{"value":1,"status":"PRESENT"}`,
		"user_amount_1d":        `{"value":35,"status":"PRESENT"}`,
		"user_device_tx_30d":    `{"value":4,"status":"PRESENT"}`,
		"user_usual_amount_30d": `{"value":60,"status":"PRESENT"}`,
		name:                    feature,
	} {
		var f client.Feature
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		features[name] = f
	}
	return features
}

func TestRules(t *testing.T) {
	rules := shipped(t)
	for _, c := range []struct {
		about         string
		amount        float64
		name, feature string
		decision      string
		reasons       []string
	}{
		{"ordinary", 35, "user_tx_10m", `{"value":1,"status":"PRESENT"}`, "approve", []string{}},
		{"users at the limit", 35, "device_payers_30d", `{"value":3,"status":"PRESENT"}`, "approve", []string{}},
		{"users", 35, "device_payers_30d", `{"value":4,"status":"PRESENT"}`, "decline", []string{"shared_device"}},
		{"pace at the limit", 35, "user_tx_10m", `{"value":3,"status":"PRESENT"}`, "approve", []string{}},
		{"pace", 35, "user_tx_10m", `{"value":4,"status":"PRESENT"}`, "decline", []string{"card_testing"}},
		{"day at the limit", 35, "user_amount_1d", `{"value":2000,"status":"PRESENT"}`, "approve", []string{}},
		{"day", 35, "user_amount_1d", `{"value":2000.01,"status":"PRESENT"}`, "review", []string{"much_in_a_day"}},
		{"unusual at the limit", 300, "user_tx_10m", `{"value":1,"status":"PRESENT"}`, "approve", []string{}},
		{"unusual", 300.01, "user_tx_10m", `{"value":1,"status":"PRESENT"}`, "review", []string{"unusual_amount"}},
		{"new device at the limit", 300, "user_device_tx_30d", `{"value":1,"status":"PRESENT"}`, "approve", []string{}},
		{"several", 300.01, "user_device_tx_30d", `{"value":1,"status":"PRESENT"}`, "review", []string{"new_device", "unusual_amount"}},
		{"most severe", 300.01, "user_tx_10m", `{"value":4,"status":"PRESENT"}`, "decline", []string{"card_testing", "unusual_amount"}},
		{"first payment", 35, "user_usual_amount_30d", `{"value":0,"status":"NOT_FOUND"}`, "approve", []string{}},
		{"too old", 35, "user_tx_10m", `{"value":null,"status":"OUTSIDE_MAX_AGE"}`, "review", []string{"unknown_feature"}},
		{"younger than its window", 35, "user_tx_10m", `{"value":1,"status":"INCOMPLETE"}`, "review", []string{"unknown_feature"}},
		{"status of tomorrow", 35, "user_tx_10m", `{"value":9,"status":"SOMETIMES"}`, "review", []string{"unknown_feature"}},
		{"not in the answer", 35, "user_tx_10m", `{}`, "review", []string{"unknown_feature"}},
		{"no number", 35, "user_tx_10m", `{"value":null,"status":"NULL_VALUE"}`, "review", []string{"unknown_feature"}},
		{"others are asked", 301, "user_tx_10m", `{}`, "review", []string{"unknown_feature", "unusual_amount"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			got, err := rules.decide(c.amount, ordinary(t, c.name, c.feature))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.reasons, got.Reasons); diff != "" || got.Decision != c.decision {
				t.Errorf("%s, want %s; reasons (-want +got):\n%s", got.Decision, c.decision, diff)
			}
		})
	}
}

// When Weir does not answer, for any reason, small amounts pass and others do not.
func TestUnanswered(t *testing.T) {
	silent := make(chan struct{})
	defer close(silent)
	for about, handler := range map[string]http.HandlerFunc{
		"timeout":    func(_ http.ResponseWriter, r *http.Request) { <-silent },
		"overloaded": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"not Weir":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no result":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"results":[]}`)) },
	} {
		t.Run(about, func(t *testing.T) {
			server := httptest.NewServer(handler)
			t.Cleanup(server.CloseClientConnections)
			e := engine{weir: client.New(server.URL), timeout: 50 * time.Millisecond, rules: shipped(t)}
			var out strings.Builder
			if err := e.run(t.Context(), strings.NewReader(`{"event_id":"a","amount":50} {"event_id":"b","amount":50.01}`), &out); err != nil {
				t.Fatal(err)
			}
			const want = `{"payment":"a","decision":"approve","reasons":["no_features"],"features":{}}
{"payment":"b","decision":"review","reasons":["no_features"],"features":{}}
`
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	const whole = "features: [n]\nrules: [{name: a, when: n > 1, decision: review}]\nunknown: review\napprove_unanswered: amount < 1\n"
	for _, c := range []struct{ old, mistaken, want string }{
		{"n > 1", "m > 1", "a: unknown name m (1:1)\n | m > 1\n | ^"},
		{"n > 1", "n", "a: expected bool, but got float64"},
		{"n > 1", `n > "1"`, "a: invalid operation: > (mismatched types float64 and string) (1:3)\n | n > \"1\"\n | ..^"},
		{"decision: review", "decision: deny", `a: "deny" is none of the decisions ["approve" "review" "decline"]`},
		{"unknown: review\n", "", `unknown: "" is none of the decisions ["approve" "review" "decline"]`},
		{"amount < 1", "n < 1", "approve_unanswered: unknown name n (1:1)\n | n < 1\n | ^"},
		{"approve_unanswered: amount < 1\n", "", "there must be rules and approve_unanswered"},
		{"unknown:", "unknwon:", "yaml: unmarshal errors:\n  line 3: field unknwon not found in type main.ruleSet"},
	} {
		t.Run(c.mistaken, func(t *testing.T) {
			_, err := parse([]byte(strings.Replace(whole, c.old, c.mistaken, 1)))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
