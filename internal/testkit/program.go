package testkit

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/server"
)

// Program is a program under test as a child process. It is killed when the
// test ends.
type Program struct {
	t       testing.TB
	process *server.Process
}

// Start starts the program at path, in a directory of its own.
func Start(t testing.TB, path string, args ...string) *Program {
	t.Helper()
	p := &Program{t, server.NewProcess(t.TempDir(), path, args...)}
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.process.Remove)
	return p
}

// Kill ends the program with SIGKILL.
func (p *Program) Kill() { p.end(syscall.SIGKILL) }

// Stop ends the program with SIGTERM and waits until it has ended.
func (p *Program) Stop() { p.end(syscall.SIGTERM) }

// Abort ends the program with SIGQUIT, at which a program in Go logs the stacks of its goroutines.
func (p *Program) Abort() { p.end(syscall.SIGQUIT) }

// Pause suspends the program until Resume. Windows has no such signal: the test fails there.
func (p *Program) Pause() { p.signal(server.Pause) }

// Resume resumes the program after Pause.
func (p *Program) Resume() { p.signal(server.Resume) }

func (p *Program) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Program) end(sig syscall.Signal) {
	p.t.Helper()
	if err := p.process.End(sig); err != nil {
		p.t.Fatal(err)
	}
}

// Done is closed when the program has ended.
func (p *Program) Done() <-chan struct{} { return p.process.Gone() }

// ExitCode returns the exit code of a program that has ended, -1 if a signal ended it.
func (p *Program) ExitCode() int { return p.process.ExitCode() }

// Log returns what the program has written so far.
func (p *Program) Log() string {
	p.t.Helper()
	text, err := os.ReadFile(p.process.LogPath)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// Command returns the path of a program that a test runs. If it is not on PATH, the test is skipped
// and says what to install or, with WEIR_TEST_REQUIRE=1, fails.
func Command(t testing.TB, name, install string) (path string) {
	t.Helper()
	if err := server.LackCommand(name, install); err != nil {
		server.Skip(t, err)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
