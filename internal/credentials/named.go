package credentials

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
)

// Named are the scopes of clients by name, in a file with one client a line:
//
//	NAME SCOPE…
//
// Empty lines and lines that begin with # are skipped. Named is safe for concurrent use.
type Named struct {
	*watch
	path  string
	known atomic.Pointer[map[string]Scopes]
}

// LoadNamed reads a file of names. The error names file and line.
func LoadNamed(path string) (*Named, error) {
	n := &Named{path: path}
	n.watch = newWatch(n.read, path)
	return n, n.read()
}

func (n *Named) read() error {
	content, err := os.ReadFile(n.path)
	if err != nil {
		return err
	}
	known, number := map[string]Scopes{}, 0
	for line := range bytes.Lines(content) {
		number++
		words := strings.Fields(string(line))
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if _, twice := known[words[0]]; twice {
			return fmt.Errorf("%s:%d: %q is there twice", n.path, number, words[0])
		}
		if len(words) == 1 {
			return fmt.Errorf("%s:%d: %q has no scopes; a line is NAME SCOPE…", n.path, number, words[0])
		}
		if known[words[0]], err = readScopes(words[1:]); err != nil {
			return fmt.Errorf("%s:%d: %w", n.path, number, err)
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("%s names no client", n.path)
	}
	n.known.Store(&known)
	return nil
}

// Scopes returns the scopes of a client; none if the file does not name it.
func (n *Named) Scopes(name string) Scopes { return (*n.known.Load())[name] }
