package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/weir-stream/weir/internal/testkit"
)

// terminal is a pseudoterminal: what a program writes to its end, and the test reads as a screen.
type terminal struct {
	program *os.File
	mu      sync.Mutex
	written bytes.Buffer
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no pseudoterminals: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	var unlock, number int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &number} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(unsafe.Pointer(argument))); failed != 0 {
			t.Fatal(failed)
		}
	}
	x := &terminal{}
	if x.program, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.program.Close() })
	go func() {
		for buffer := make([]byte, 4096); ; {
			n, err := screen.Read(buffer)
			x.mu.Lock()
			x.written.Write(buffer[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return x
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.written.String()
}

// On a terminal the demo's progress is one line, which is written over, and what follows begins on
// a line of its own.
func TestDemoOnATerminal(t *testing.T) {
	t.Parallel()
	screen := newTerminal(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := newRootCommand()
	cmd.SetArgs([]string{"demo", "--listen", "127.0.0.1:0", "--days", "0"})
	cmd.SetErr(screen.program)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	line := regexp.MustCompile(`\r\x1b\[K\d+ events, \d+ a second, \d+ behind, \d+ dead letters`)
	parts := func() (before, after string) {
		before, after, _ = strings.Cut(screen.text(), "Ask from another shell")
		return before, after
	}
	testkit.Eventually(t, patience, "three lines over one another", func() (bool, string) {
		_, after := parts()
		return len(line.FindAllString(after, -1)) >= 3, screen.text()
	})
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, "the end of the line", func() (bool, string) {
		return strings.HasSuffix(screen.text(), " dead letters\r\n"), screen.text()
	})
	before, after := parts()
	lines := line.FindAllStringIndex(after, -1)
	if between := after[lines[0][0]:lines[len(lines)-1][1]]; strings.Contains(between, "\n") {
		t.Errorf("progress takes several lines, want one that is rewritten: %q", between)
	}
	if found := line.FindStringIndex(before); found == nil || !strings.HasPrefix(before[strings.LastIndex(before, "dead letters"):], "dead letters\r\n") {
		t.Errorf("the text after the progress does not begin on its own line: %q", before)
	}
}
