package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
)

func TestDemoAccountsForEveryEvent(t *testing.T) {
	t.Parallel()
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
		t.Fatalf("printed %q, want one line of JSON: %v", out, err)
	}
	if got.Events != n || got.Applied != n || got.Dead != 0 || got.Seconds <= 0 {
		t.Errorf("printed %s, want all %d events to be applied", out, n)
	}
}

// The demo begins with a past that contains frauds, and prints how to ask about them.
func TestDemoReportsItsFrauds(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--listen", "127.0.0.1:0", "--days", "1")
	p.shows(t, "all there is to ask for")
	text := p.err.String()
	if !strings.HasPrefix(text, "Open http://127.0.0.1:") {
		t.Errorf("the output does not begin with the address of the page:\n%s", text)
	}
	for fraud, want := range map[string]string{
		"device farm":        `device_users_30d +40 `,
		"card testing":       `card_merchants_7d +30 `,
		"impossible journey": `user_speed_1d +9916\.`,
		"account takeover":   `(?s)user_avg_amount_7d +(39|40)\.\d+ .*user_device_tx_30d +1 .*device_failed_logins_1h +6 `,
		"mule":               `(?s)payee_payers_1d +25 .*payee_amount_1d +10000 `,
		"bust-out":           `user_amount_1d +6200 `,
	} {
		_, explained, _ := strings.Cut(text, "  "+fraud+": ")
		_, command, _ := strings.Cut(explained, "\n    weir ")
		command, _, _ = strings.Cut(command, "\n")
		out, err := weir(t, strings.Fields(command)...)
		if err != nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s, asked for with %s: error %v, output\n%s\nwant %s", fraud, command, err, out, want)
		}
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
}

// The service of the examples needs fewer keys than the shipped one of that name: the questions that the demo prints have
// no others, which would be refused.
func TestDemoAsksWithTheKeysOfItsService(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--listen", "127.0.0.1:0", "--days", "1", "--features", "../../docs/examples/payments/features.yaml")
	p.shows(t, "all there is to ask for")
	commands := regexp.MustCompile(`(?m)^    weir (query .*)$`).FindAllStringSubmatch(p.err.String(), -1)
	if len(commands) == 0 || strings.Contains(p.err.String(), "weir: ") {
		t.Errorf("the demo prints %d questions, want some and no error:\n%s", len(commands), p.err.String())
	}
	for _, command := range commands {
		if out, err := weir(t, strings.Fields(command[1])...); err != nil || !strings.Contains(out, "user_amount_1d") {
			t.Errorf("%s: error %v, output\n%s", command[1], err, out)
		}
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
}

// The demo has the topics and the rows of the shipped tables, and follows files and lists: what the tutorial blocks and looks
// up is answered, also what it adds while the demo runs.
func TestDemoHasTheTutorialsTablesAndLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"transactions.yaml", "tables.yaml"} {
		writeFile(t, dir, name, readFile(t, filepath.Join(shipped, name)))
	}
	p := start(t, "demo", "--listen", "127.0.0.1:0", "--days", "1", "--features", dir)
	p.shows(t, "all there is to ask for")
	found := regexp.MustCompile(`(?s)Open (http://\S+) .*broker +(\S+) `).FindStringSubmatch(p.err.String())
	if found == nil {
		t.Fatalf("the demo does not print its addresses:\n%s", p.err.String())
	}
	answers := func(want string, question ...string) {
		t.Helper()
		testkit.Eventually(t, patience, want, func() (bool, string) {
			out, err := weir(t, append([]string{"query", "--address", found[1]}, question...)...)
			return err == nil && regexp.MustCompile("(?s)"+want).MatchString(out), fmt.Sprint(out, err)
		})
	}
	answers(`merchant_risk +"high" .*card_blocked +true `, "merchant_risk", "card_blocked", "merchant_id=m00002", "card_id=c900002")
	answers(`card_blocked +false `, "card_blocked", "card_id=c000017")
	if _, err := weir(t, "list", "add", "blocked_cards", "c000017", "--why", "case 17", "--features", dir, "--kafka.brokers", found[2]); err != nil {
		t.Fatal(err)
	}
	answers(`card_blocked +true `, "card_blocked", "card_id=c000017")
	written := heredocs(t, "../../docs/tutorial.md")
	for _, name := range []string{"customers.csv", "customers.yaml"} {
		writeFile(t, dir, name, written["my-features/"+name])
	}
	answers(`user_tier +"gold" `, "user_tier", "user_id=u000001")
	writeFile(t, dir, "more.yaml", "lists: {vips: {topic: more.lists}}\nfeatures: {vip: {expr: user_id in vips}}\n")
	answers(`vip +false `, "vip", "user_id=u000001") // its topic was made
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
}

// Some events of the demo cannot be used and become dead letters, as its screen and the page's
// figures say, and some are too late for short windows.
func TestDemoSetsEventsAside(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--listen", "127.0.0.1:0", "--days", "0", "--events", "20000", "--rate", "0")
	p.shows(t, "all there is to ask for")
	address := regexp.MustCompile(`Open (http://\S+) `).FindStringSubmatch(p.err.String())[1]
	var status struct {
		Processor struct {
			Events []struct {
				Stream, Outcome string
				Count           float64
			}
			LastDeadLetters []struct{ Reason string } `json:"last_dead_letters"`
		}
	}
	late := func() (n float64) {
		for _, e := range status.Processor.Events {
			if e.Outcome == "late" {
				n += e.Count
			}
		}
		return n
	}
	testkit.Eventually(t, patience, "dead letters and late events", func() (bool, string) {
		_, body := statusOf(t, address+"/v1/status")
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Fatal(err)
		}
		return len(status.Processor.LastDeadLetters) >= 3 && late() >= 5, body
	})
	testkit.Eventually(t, patience, "dead letters on the screen", func() (bool, string) {
		return regexp.MustCompile(`, [1-9]\d* dead letters`).MatchString(p.err.String()), p.err.String()
	})
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
}

// Without the services that show frauds, the demo asks about entities from its events.
func TestDemoAnswersWhatItAsks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "features.yaml")
	definitions := "streams: {s: {topic: transactions, timestamp: timestamp, fields: {user_id: string}}}\nfeatures: {n: 'COUNT(1d, s, user_id)'}\nservices: {all: [n]}\n"
	if err := os.WriteFile(file, []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, seed := range []string{"1", "2"} {
		p := start(t, "demo", "--listen", "127.0.0.1:0", "--features", file, "--days", "0", "--seed", seed)
		p.shows(t, "all there is to ask for")
		p.stop()
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
		text := p.err.String()
		for _, want := range []string{"  curl 'http://127.0.0.1:", "/v1/features/n?user_id=u", `"value":`, "  weir query --address "} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
		asked[regexp.MustCompile(`user_id=u\d+`).FindString(text)] = true
	}
	if len(asked) != 2 {
		t.Errorf("two seeds hide the same frauds, of %v", asked)
	}
}

// The demo generates events only for topics that the definitions read.
func TestDemoOfOtherDefinitions(t *testing.T) {
	t.Parallel()
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

// A demo that is to end when all events are applied, and is ended before, fails.
func TestDemoEndedBeforeItsEvents(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--listen", "127.0.0.1:0", "--days", "0", "--events", "1000000", "--rate", "10", "--exit")
	p.shows(t, " a second, ")
	p.stop()
	if err := p.wait(t); err == nil || !regexp.MustCompile(`^ended before all events were applied: \d+ of 1000000$`).MatchString(err.Error()) || p.out.String() != "" {
		t.Errorf("error %v, output %s", err, p.out.String())
	}
}
