package redistest

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// ownClock is the source of a library that adds to the time that a program asks for what a file holds: libfaketime does not
// work with Redis' allocator.
//
//go:embed clock.c.txt
var ownClock []byte

// withClock returns the command that starts a server with a clock of its own, at the right time.
func (r *Server) withClock() ([]string, error) {
	source, library := filepath.Join(r.dir, "clock.c"), filepath.Join(r.dir, "clock.so")
	if err := os.WriteFile(source, ownClock, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("a server with its own clock needs gcc: %w\n%s", err, out)
	}
	if err := r.writeClock(0); err != nil {
		return nil, err
	}
	return []string{"env", "LD_PRELOAD=" + library, "CLOCK=" + r.clockFile(), "redis-server"}, nil
}

func (r *Server) clockFile() string { return filepath.Join(r.dir, "clock") }

// writeClock writes into the file, which the server has mapped.
func (r *Server) writeClock(ahead time.Duration) error {
	f, err := os.OpenFile(r.clockFile(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return binary.Write(f, binary.NativeEndian, int64(ahead/time.Second))
}

// SetClock sets the clock of a server with OwnClock: so far ahead of this machine's, in whole seconds, or behind it.
func (r *Server) SetClock(ahead time.Duration) {
	r.t.Helper()
	if err := r.writeClock(ahead); err != nil {
		r.t.Fatal(err)
	}
}
