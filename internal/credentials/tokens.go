package credentials

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
)

// shortestToken is the least length of a token, in characters.
const shortestToken = 16

var (
	// tokenPattern matches a bearer token in HTTP (RFC 6750).
	tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
	// namePattern matches a client's name. Names are logged, so it is too short for most tokens, which may be in a
	// name's place by mistake.
	namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,31}$`)
)

// Tokens are those of a file, one a line:
//
//	TOKEN [NAME [SCOPE…]]
//
// A token without scopes has AllScopes. Several tokens may have one name. Empty lines and lines that begin
// with # are skipped. Tokens is safe for concurrent use, and keeps only hashes.
type Tokens struct {
	*watch
	path  string
	known atomic.Pointer[[]knownToken]
}

type knownToken struct {
	hash   [sha256.Size]byte
	client *Client
}

// LoadTokens reads a file of tokens. The error names file and line, never a
// token.
func LoadTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path}
	t.watch = newWatch(t.read, path)
	return t, t.read()
}

// FirstToken returns the first token of a file.
func FirstToken(path string) (string, error) {
	lines, err := readTokens(path)
	if err != nil {
		return "", err
	}
	return lines[0].token, nil
}

// tokenLine is a line of a file of tokens.
type tokenLine struct {
	token  string
	client *Client
}

// readTokens returns the tokens of a file, in their order; there is at least one.
func readTokens(path string) ([]tokenLine, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines []tokenLine
	number := 0
	for line := range bytes.Lines(content) {
		number++
		words := strings.Fields(string(line))
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		client, err := readTokenLine(words)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		lines = append(lines, tokenLine{words[0], client})
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s holds no token", path)
	}
	return lines, nil
}

// readTokenLine reads the words of a line: a token, a name, scopes.
func readTokenLine(words []string) (*Client, error) {
	token, client := words[0], &Client{Scopes: AllScopes()}
	switch {
	case !tokenPattern.MatchString(token):
		return nil, errors.New("is not a token: letters, digits and -._~+/ are allowed; a line is TOKEN [NAME [SCOPE…]]")
	case len(token) < shortestToken:
		return nil, fmt.Errorf("a token of %d characters can be guessed: at least %d, such as from `openssl rand -hex 32`", len(token), shortestToken)
	}
	if len(words) > 1 {
		// The name is not shown: if it is invalid, it may be a token.
		if client.Name = words[1]; !namePattern.MatchString(client.Name) {
			return nil, errors.New("what follows the token is not the name of a client: up to 32 letters, digits and -._@ are allowed; a line is TOKEN [NAME [SCOPE…]]")
		}
	}
	if len(words) > 2 {
		var err error
		if client.Scopes, err = readScopes(words[2:]); err != nil {
			return nil, err
		}
	}
	return client, nil
}

func (t *Tokens) read() error {
	lines, err := readTokens(t.path)
	if err != nil {
		return err
	}
	known := make([]knownToken, len(lines))
	for i, line := range lines {
		known[i] = knownToken{sha256.Sum256([]byte(line.token)), line.client}
	}
	t.known.Store(&known)
	return nil
}

// Count returns the number of tokens.
func (t *Tokens) Count() int { return len(*t.known.Load()) }

// Identify identifies the owner of a token. An unknown token is an error. Its duration reveals
// nothing about the tokens: hashes are compared, and all of them.
func (t *Tokens) Identify(token string) (*Client, error) {
	given := sha256.Sum256([]byte(token))
	known, found := *t.known.Load(), -1
	for i := range known {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(given[:], known[i].hash[:]), i, found)
	}
	if found < 0 {
		return nil, errors.New("the token is not valid here: it may be mistyped, or replaced by another")
	}
	return known[found].client, nil
}
