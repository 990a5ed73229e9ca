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

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "# of the rule engine\n"+one+"\n\n  "+two+" \r\n")
	tokens, err := credentials.LoadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]bool{one: true, two: true, three: false, "": false, one + " ": false, one[1:]: false, "# of the rule engine": false} {
		if got := tokens.Valid(token); got != want {
			t.Errorf("Valid(%q) = %v, want %v", token, got, want)
		}
	}
	if tokens.Count() != 2 {
		t.Errorf("%d tokens, want 2", tokens.Count())
	}
}

// Tokens are taken at the second look that finds the same, and bad ones are
// told of once.
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
	valid := func(want ...string) {
		t.Helper()
		for _, token := range []string{one, two, three} {
			wanted := false
			for _, w := range want {
				wanted = wanted || w == token
			}
			if tokens.Valid(token) != wanted {
				t.Errorf("Valid(%s) = %v, want %v", token, !wanted, wanted)
			}
		}
	}
	look(false, "")
	write(t, path, one+"\n"+two)
	look(false, "")
	valid(one)
	look(true, "")
	valid(one, two)
	look(false, "")

	write(t, path, "short")
	look(false, "")
	look(false, path+":1: a token of 5 characters can be guessed: at least 16, such as from `openssl rand -hex 32`")
	look(false, "")
	valid(one, two)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	look(false, "")
	look(false, "open "+path+": no such file or directory")
	valid(one, two)

	write(t, path, three)
	look(false, "")
	look(true, "")
	valid(three)
}

func TestBadTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	for text, want := range map[string]string{
		"":                             path + " holds no token",
		"# none\n\n":                   path + " holds no token",
		one + "\nsecret":               path + ":2: a token of 6 characters can be guessed: at least 16, such as from `openssl rand -hex 32`",
		one + " " + two:                path + ":1: is no token: letters, digits and -._~+/ are allowed, one token a line",
		"\ncaf\u00e9aaaaaaaaaaaaaaaaa": path + ":2: is no token: letters, digits and -._~+/ are allowed, one token a line",
	} {
		write(t, path, text)
		if _, err := credentials.LoadTokens(path); fmt.Sprint(err) != want {
			t.Errorf("%q\ngot  %v\nwant %s", text, err, want)
		}
	}
}
