package credentials

import (
	"crypto/sha256"
	"os"
)

// watch tells when files have changed, by what they hold, so it does not matter
// how they were replaced: written, renamed, or by the links that Kubernetes
// turns.
type watch struct {
	paths   []string
	seen    [sha256.Size]byte // at the last look
	settled [sha256.Size]byte // that which was taken, or refused
}

// newWatch takes what the files hold now for settled.
func newWatch(paths ...string) *watch {
	w := &watch{paths: paths}
	w.seen = w.fingerprint()
	w.settled = w.seen
	return w
}

// changed says whether the files hold something new, and did so at the look
// before as well: writing a file may take a moment. It says so once.
func (w *watch) changed() bool {
	found := w.fingerprint()
	twice := found == w.seen
	w.seen = found
	if !twice || found == w.settled {
		return false
	}
	w.settled = found
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
