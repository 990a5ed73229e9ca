package credentials_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-stream/weir/internal/credentials"
)

const (
	one   = "0123456789abcdef"
	two   = "fedcba98-76543210._~+/=="
	three = "another-token-of-many-characters"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func valid(tokens *credentials.Tokens, token string) bool {
	client, err := tokens.Identify(token)
	return err == nil && client != nil
}

// A line names its client and its scopes; a token without scopes may ask for everything but lists.
func TestClientsOfTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, one+" \n"+two+"\tpayments\n"+three+"  payments-eu  service:payment_risk service:login.risk operator\n")
	tokens, err := credentials.LoadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{
		one: ": query metrics author operator", two: "payments: query metrics author operator", three: "payments-eu: operator service:payment_risk service:login.risk",
	} {
		client, err := tokens.Identify(token)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s: %v", client.Name, client.Scopes); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	client, _ := tokens.Identify(three)
	s := client.Scopes
	for what, got := range map[string]bool{
		"the status": s.Operator(), "something": s.Query(), "a service": s.Service("payment_risk"), "a feature of a service": s.Feature([]string{"other", "login.risk"}),
	} {
		if !got {
			t.Errorf("the client may not ask for %s, want it to", what)
		}
	}
	for what, got := range map[string]bool{
		"everything": s.Everything(), "the metrics": s.Metrics(), "the definitions": s.Author(), "another service": s.Service("other"), "a feature of another service": s.Feature([]string{"other"}), "a feature of no service": s.Feature(nil),
	} {
		if got {
			t.Errorf("the client may ask for %s, want it not to", what)
		}
	}
}

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "# of the rule engine\n"+one+"\n\n  "+two+" \r\n")
	tokens, err := credentials.LoadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]bool{one: true, two: true, three: false, "": false, one + " ": false, one[1:]: false, "# of the rule engine": false} {
		if got := valid(tokens, token); got != want {
			t.Errorf("Identify(%q) finds a client: %v, want %v", token, got, want)
		}
	}
	if tokens.Count() != 2 {
		t.Errorf("%d tokens, want 2", tokens.Count())
	}
}

// Tokens are loaded at the second look that finds the same content, and bad ones are reported once.
func TestTokensThatChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, one)
	tokens, err := credentials.LoadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	look := func(wantChanged bool, wantErr string) {
		t.Helper()
		changed, err := tokens.Look()
		if message := fmt.Sprint(err); changed != wantChanged || (err != nil || wantErr != "") && message != wantErr {
			t.Errorf("Look = %v, %v; want %v, %s", changed, err, wantChanged, wantErr)
		}
	}
	among := func(want ...string) {
		t.Helper()
		for _, token := range []string{one, two, three} {
			wanted := false
			for _, w := range want {
				wanted = wanted || w == token
			}
			if valid(tokens, token) != wanted {
				t.Errorf("Identify(%s) finds a client: %v, want %v", token, !wanted, wanted)
			}
		}
	}
	look(false, "")
	write(t, path, one+"\n"+two)
	look(false, "")
	among(one)
	look(true, "")
	among(one, two)
	look(false, "")

	write(t, path, "short")
	look(false, "")
	look(false, path+":1: a token of 5 characters can be guessed: at least 16, such as from `openssl rand -hex 32`")
	look(false, "")
	among(one, two)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	look(false, "")
	look(false, "open "+path+": no such file or directory")
	among(one, two)

	write(t, path, three)
	look(false, "")
	look(true, "")
	among(three)
}

func TestBadTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	for text, want := range map[string]string{
		"":                             path + " holds no token",
		"# none\n\n":                   path + " holds no token",
		one + "\nsecret":               path + ":2: a token of 6 characters can be guessed: at least 16, such as from `openssl rand -hex 32`",
		one + " " + two:                path + ":1: what follows the token is not the name of a client: up to 32 letters, digits and -._@ are allowed; a line is TOKEN [NAME [SCOPE…]]",
		one + " a " + two:              path + ":1: scope 1 is unknown: the scopes are query, service:NAME, metrics, author, operator and lists",
		one + " a query admin":         path + ":1: scope 2, admin, allows too much to be one: name those of metrics, author, operator and lists that are needed",
		one + " a query service:":      path + ":1: scope 2 is unknown: the scopes are query, service:NAME, metrics, author, operator and lists",
		"\ncaf\u00e9aaaaaaaaaaaaaaaaa": path + ":2: is not a token: letters, digits and -._~+/ are allowed; a line is TOKEN [NAME [SCOPE…]]",
	} {
		write(t, path, text)
		if _, err := credentials.LoadTokens(path); fmt.Sprint(err) != want {
			t.Errorf("%q\ngot  %v\nwant %s", text, err, want)
		}
	}
}
