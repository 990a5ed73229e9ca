package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Kit stands in for the test that internal/testkit asks for. It belongs to one round, or to the
// servers that several rounds share. Fatal ends the calling goroutine, as in a test.
type Kit struct {
	testing.TB // nil; makes Kit a testing.TB despite its unexported method
	name       string
	fail       func(message string)

	mu     sync.Mutex
	ends   []func()
	dir    string
	dirs   int
	failed bool
}

// NewKit makes a kit that reports failures to a function; its folders have its name.
func NewKit(name string, fail func(message string)) *Kit { return &Kit{name: name, fail: fail} }

// Helper does nothing: failures are reported without a line number.
func (k *Kit) Helper() {}

// Name returns the kit's name.
func (k *Kit) Name() string { return k.name }

// Log does nothing: servers and processes have logs of their own.
func (k *Kit) Log(...any) {}

// Logf does nothing: see [Kit.Log].
func (k *Kit) Logf(string, ...any) {}

// Context is never cancelled: servers stop when the kit is closed.
func (k *Kit) Context() context.Context { return context.Background() }

// Error reports a failure.
func (k *Kit) Error(args ...any) { k.report(fmt.Sprint(args...)) }

// Errorf reports a failure.
func (k *Kit) Errorf(format string, args ...any) { k.report(fmt.Sprintf(format, args...)) }

// Fatal reports a failure and ends the goroutine.
func (k *Kit) Fatal(args ...any) {
	k.report(fmt.Sprint(args...))
	runtime.Goexit()
}

// Fatalf reports a failure and ends the goroutine.
func (k *Kit) Fatalf(format string, args ...any) { k.Fatal(fmt.Sprintf(format, args...)) }

// Skip fails: a server that cannot run on this machine calls it.
func (k *Kit) Skip(args ...any) { k.Fatal(args...) }

func (k *Kit) report(message string) {
	k.mu.Lock()
	k.failed = true
	k.mu.Unlock()
	k.fail(strings.TrimSpace(message))
}

// Failed reports whether anything has failed.
func (k *Kit) Failed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failed
}

// Cleanup registers a function to call when the kit is closed.
func (k *Kit) Cleanup(end func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = append(k.ends, end)
}

// TempDir makes a folder, which is removed when the kit is closed.
func (k *Kit) TempDir() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dir == "" {
		dir, err := os.MkdirTemp("", "weir-faults-"+k.name+"-")
		if err != nil {
			panic(err) // trials need a disk
		}
		k.dir = dir
	}
	k.dirs++
	dir := filepath.Join(k.dir, fmt.Sprint(k.dirs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		panic(err)
	}
	return dir
}

// Close calls the functions given to Cleanup, the latest first, and removes the kit's folders
// unless keep is set.
func (k *Kit) Close(keep bool) {
	k.mu.Lock()
	ends, dir := k.ends, k.dir
	k.ends = nil
	k.mu.Unlock()
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	switch {
	case dir == "":
	case keep:
		fmt.Fprintln(os.Stderr, "faults: kept", dir)
	default:
		_ = os.RemoveAll(dir)
	}
}
