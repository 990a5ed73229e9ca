package main

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

// kit is what internal/testkit takes for a test: something that outlives a round, or the
// round itself. What fails ends the goroutine in which it does, as in a test.
type kit struct {
	testing.TB // nil, for what the testing package keeps to itself
	name       string
	fail       func(message string)

	mu     sync.Mutex
	ends   []func()
	dir    string
	dirs   int
	failed bool
	lacks  string // what a server lacks that cannot be had on this machine
}

func newKit(name string, fail func(string)) *kit { return &kit{name: name, fail: fail} }

func (k *kit) Helper()                      {}
func (k *kit) Name() string                 { return k.name }
func (k *kit) Log(args ...any)              {}
func (k *kit) Logf(format string, _ ...any) {}
func (k *kit) Error(args ...any)            { k.report(fmt.Sprint(args...)) }
func (k *kit) Errorf(f string, args ...any) { k.report(fmt.Sprintf(f, args...)) }
func (k *kit) Fatal(args ...any)            { k.report(fmt.Sprint(args...)); runtime.Goexit() }
func (k *kit) Fatalf(f string, args ...any) { k.report(fmt.Sprintf(f, args...)); runtime.Goexit() }
func (k *kit) Context() context.Context     { return context.Background() }

// Skip is what a server calls that cannot be had here.
func (k *kit) Skip(args ...any) {
	k.mu.Lock()
	k.lacks = fmt.Sprint(args...)
	k.mu.Unlock()
	k.Fatal(args...)
}

func (k *kit) report(message string) {
	k.mu.Lock()
	k.failed = true
	k.mu.Unlock()
	k.fail(strings.TrimSpace(message))
}

// Failed says whether anything has failed.
func (k *kit) Failed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failed
}

func (k *kit) Cleanup(end func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = append(k.ends, end)
}

// TempDir makes a folder that goes with the kit.
func (k *kit) TempDir() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dir == "" {
		dir, err := os.MkdirTemp("", "weir-faults-"+k.name+"-")
		if err != nil {
			panic(err) // no disk, no trials
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

// close ends what was made, the latest first, and takes its files away unless they are to
// be kept.
func (k *kit) close(keep bool) {
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
