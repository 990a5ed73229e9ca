package credentials

import (
	"crypto/sha256"
	"os"
)

// watch detects changed files by their content, so it works with every way to replace them: written, renamed, or by the
// links of Kubernetes.
type watch struct {
	load    func() error // reads the files
	paths   []string
	seen    [sha256.Size]byte // at the last look
	handled [sha256.Size]byte // of the content last accepted or refused
}

// newWatch treats the files' current content as handled.
func newWatch(load func() error, paths ...string) *watch {
	w := &watch{load: load, paths: paths}
	w.seen = w.fingerprint()
	w.handled = w.seen
	return w
}

// Look loads changed files, and reports whether it did. After an error what was loaded before stays in use; the error is
// returned once for each content.
func (w *watch) Look() (changed bool, err error) {
	if !w.changed() {
		return false, nil
	}
	err = w.load()
	return err == nil, err
}

// changed reports whether the files have new content that was the same at the previous look, because writing a file may
// take a moment. It reports each content once.
func (w *watch) changed() bool {
	found := w.fingerprint()
	twice := found == w.seen
	w.seen = found
	if !twice || found == w.handled {
		return false
	}
	w.handled = found
	return true
}

func (w *watch) fingerprint() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, path := range w.paths {
		content, err := os.ReadFile(path)
		if err != nil {
			content = []byte(err.Error())
		}
		each := sha256.Sum256(content)
		h.Write(each[:])
	}
	h.Sum(sum[:0])
	return sum
}
