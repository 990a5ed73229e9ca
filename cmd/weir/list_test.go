package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/operate/lists"
)

// What an operator adds to a list is in the answers of all processes soon, until it ends or is removed.
func TestLists(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "features.yaml")
	err := os.WriteFile(file, []byte(`
streams:
  pay: {topic: pay, timestamp: at, fields: {card_id: string, account: int}}
tables:
  merchant: {topic: merchants, key: id, fields: {risk: string}}
lists:
  blocked_cards: {topic: weir.lists}
  trusted_accounts: {topic: weir.lists, type: int}
  vpn: {topic: weir.lists, type: network}
features:
  card_tx: COUNT(1d, pay, card_id)
  account_tx: COUNT(1d, pay, account)
  blocked: {expr: card_id in blocked_cards}
  trusted: {expr: account in trusted_accounts}
  hidden: {expr: ip in list(vpn)}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	flags, _ := servers(t, map[string]int{"pay": 1, "weir.dead-letters": 1, "weir.lists": 3, "merchants": 1})
	flags[1] = file
	kafka := []string{"--features", file, "--kafka.brokers", flags[7]}
	list := func(args ...string) string {
		t.Helper()
		out, err := weir(t, append(append([]string{"list"}, args...), kafka...)...)
		if err != nil {
			return message(err)
		}
		return out
	}
	var processes []string
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef0123 eve lists query operator\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	protected := start(t, append([]string{"run", "--roles", "api", "--api.tokens_file", tokens}, flags...)...).address(t)
	change := func(name, body string) string {
		t.Helper()
		r, err := http.NewRequest("POST", protected+"/v1/lists/"+name, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer 0123456789abcdef0123")
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	for range 2 {
		p := start(t, append([]string{"run", "--roles", "api"}, flags...)...)
		processes = append(processes, p.address(t))
		ready(t, processes[len(processes)-1])
	}
	become := func(card string, account int, want string) {
		t.Helper()
		for _, base := range processes {
			testkit.Eventually(t, patience, "the answer", func() (bool, string) {
				_, body := ask(t, "POST", base+"/v1/query", fmt.Sprintf(`{"features": ["blocked", "trusted"], "entities": [{"card_id": %q, "account": %d}]}`, card, account))
				values := regexp.MustCompile(`"value":(\w+)`).FindAllStringSubmatch(body, -1)
				got := fmt.Sprint(len(values))
				if len(values) == 2 {
					got = values[0][1] + " " + values[1][1]
				}
				return got == want, body
			})
		}
	}
	become("c1", 7, "false false")
	if got := list("add", "blocked_cards", "c1", "c2", "a|b", "--why", "case 17", "--who", "ann"); got != "3 values added to blocked_cards\n" {
		t.Errorf("add: %s", got)
	}
	list("add", "trusted_accounts", "0007", "--until", "2999-01-01", "--who", "bob")
	become("c1", 7, "true true")
	become("a|b", 8, "true false")
	const since = `20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	for _, c := range [][2]string{
		{"blocked_cards", `^VALUE  SINCE +UNTIL  WHO  WHY\na\|b    ` + since + `  -      ann  case 17\nc1     ` + since + `  -      ann  case 17\nc2     ` + since + `  -      ann  case 17\n$`},
		{"trusted_accounts", `^VALUE  SINCE +UNTIL +WHO  WHY\n7      ` + since + `  2999-01-02T00:00:00Z  bob  \n$`},
	} {
		if got := list("show", c[0]); !regexp.MustCompile(c[1]).MatchString(got) {
			t.Errorf("show: %s", got)
		}
	}
	if got := list("remove", "blocked_cards", "c1", "--who", "eve"); got != "1 value not in blocked_cards any more\n" {
		t.Errorf("remove: %s", got)
	}
	become("c1", 7, "false true")
	become("c2", 7, "true true")
	for _, c := range []struct{ args, want string }{
		{"add blocked_cards c7 c8 c7", "2 values added to blocked_cards\n"},
		{"remove blocked_cards c7 c1 nosuch c8 c7", "2 values not in blocked_cards any more; not in it before: c1, nosuch\n"},
		{"add vpn 10.0.0.0/8", "1 value added to vpn\n"},
		{"remove vpn 10.0.0.0/8 010.0.0.0/8", `weir: "010.0.0.0/8" is neither a network`},
		{"remove vpn ::ffff:10.0.0.0/104 11.1.1.1", "1 value not in vpn any more; not in it before: 11.1.1.1/32\n"},
		{"remove trusted_accounts 07 8", "1 value not in trusted_accounts any more; not in it before: 8\n"},
		{"add trusted_accounts 7", "1 value added to trusted_accounts\n"},
	} {
		if got := list(strings.Split(c.args, " ")...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.args, got, c.want)
		}
	}
	var left []lists.Entry
	if err := json.Unmarshal([]byte(list("show", "blocked_cards", "c1", "c2", "--json")), &left); err != nil || len(left) != 1 || left[0].Value != "c2" || left[0].Until != nil || time.Since(left[0].Since) > time.Hour {
		t.Errorf("error %v, left %+v", err, left)
	}
	if got := list("show", "blocked_cards", "none", "--json"); got != "[]\n" {
		t.Errorf("nothing: %s", got)
	}
	list("add", "blocked_cards", "c1", "--until", "1h")
	become("c1", 7, "true true")
	// Over HTTP.
	ready(t, protected)
	if got, want := change("blocked_cards", `{"add": [{"value": "c9", "why": "case 18"}], "remove": [{"value": "c2"}]}`), `{"list":"blocked_cards","added":1,"removed":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	become("c9", 7, "true true")
	become("c2", 7, "false true")
	if got := list("show", "blocked_cards", "c9"); !strings.Contains(got, "eve  case 18") {
		t.Errorf("show: %s", got)
	}
	if got, want := change("vpn", `{"add": [{"value": "10.0.0.0/8"}, {"value": "2001:db8::/32"}]}`), `{"list":"vpn","added":2,"removed":0}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	testkit.Eventually(t, patience, "addresses in networks", func() (bool, string) {
		_, body := ask(t, "POST", processes[0]+"/v1/query", `{"features": ["hidden"], "entities": [{"ip": "10.1.2.3:443"}, {"ip": "2001:db8::1"}, {"ip": "11.1.1.1"}]}`)
		return fmt.Sprint(regexp.MustCompile(`"value":(\w+)`).FindAllStringSubmatch(body, -1)) == `[["value":true true] ["value":true true] ["value":false false]]`, body
	})
	for _, c := range []struct{ args, want string }{
		{"add vpn 10.0.0.1/8", `weir: "10.0.0.1/8" has bits beyond its length: write 10.0.0.0/8`},
		{"add blocked_card c1", `weir: unknown list "blocked_card"; did you mean "blocked_cards"?`},
		{"show merchant", `weir: unknown list "merchant"; known: blocked_cards, trusted_accounts, vpn`},
		{"add trusted_accounts c1", `weir: "c1" is not a whole number of 64 bits, as the values of list trusted_accounts are`},
		{"add blocked_cards c1 --until yesterday", `weir: --until: "yesterday" is neither a moment such as 2026-12-31T23:59:59Z, nor a day such as 2026-12-31, nor a time such as 30d`},
		{"add blocked_cards c1 --until 2020-01-01", "weir: --until: 2020-01-01 has passed"},
		{"add blocked_cards c1 \xff", `weir: "\xff`},
		{"add blocked_cards", "weir: requires at least 2 arg(s), only received 1; usage: weir list add LIST VALUE... [flags]"},
	} {
		if got := list(strings.Split(c.args, " ")...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q: got %s, want %s", c.args, got, c.want)
		}
	}
	if _, err := weir(t, append([]string{"list", "add", "blocked_cards", "", "--features", file}, kafka[2:]...)...); message(err) != "weir: the value is empty" {
		t.Errorf("got %v", err)
	}
	if _, err := weir(t, "list", "show", "x", "--features", "../../config/features/transactions.yaml"); message(err) != "weir: the definitions have no lists" {
		t.Errorf("got %v", err)
	}
}
