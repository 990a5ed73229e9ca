package credentials

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"regexp"
	"sync/atomic"
)

// ShortestToken is the least length of a token, in characters.
const ShortestToken = 16

// tokenForm is that of a bearer token in HTTP (RFC 6750).
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// Tokens are those of a file: one a line; empty lines and those that begin with
// # do not count. They are safe for concurrent use, and kept as hashes.
type Tokens struct {
	path   string
	watch  *watch
	hashes atomic.Pointer[[][sha256.Size]byte]
}

// LoadTokens reads a file of tokens. The error names file and line, never a
// token.
func LoadTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path, watch: newWatch(path)}
	return t, t.load()
}

// ReadTokens are the tokens of a file, in their order; there is at least one.
func ReadTokens(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tokens []string
	number := 0
	for line := range bytes.Lines(content) {
		number++
		token := bytes.TrimSpace(line)
		switch {
		case len(token) == 0 || token[0] == '#':
			continue
		case !tokenForm.Match(token):
			return nil, fmt.Errorf("%s:%d: is no token: letters, digits and -._~+/ are allowed, one token a line", path, number)
		case len(token) < ShortestToken:
			return nil, fmt.Errorf("%s:%d: a token of %d characters can be guessed: at least %d, such as from `openssl rand -hex 32`",
				path, number, len(token), ShortestToken)
		}
		tokens = append(tokens, string(token))
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s holds no token", path)
	}
	return tokens, nil
}

func (t *Tokens) load() error {
	tokens, err := ReadTokens(t.path)
	if err != nil {
		return err
	}
	hashes := make([][sha256.Size]byte, len(tokens))
	for i, token := range tokens {
		hashes[i] = sha256.Sum256([]byte(token))
	}
	t.hashes.Store(&hashes)
	return nil
}

// Look takes tokens that have changed in the file; changed says that it has
// done so. With an error those before stay valid; it comes once for a content.
func (t *Tokens) Look() (changed bool, err error) {
	if !t.watch.changed() {
		return false, nil
	}
	err = t.load()
	return err == nil, err
}

// Count is the number of tokens.
func (t *Tokens) Count() int { return len(*t.hashes.Load()) }

// Valid says whether a token is among them. How long it takes tells nothing
// about the tokens: hashes are compared, and all of them.
func (t *Tokens) Valid(token string) bool {
	given, found := sha256.Sum256([]byte(token)), 0
	for _, hash := range *t.hashes.Load() {
		found |= subtle.ConstantTimeCompare(given[:], hash[:])
	}
	return found == 1
}
