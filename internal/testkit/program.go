package testkit

import (
	"os"
	"syscall"
	"testing"
)

// Program is a program under test as a child process. It is killed when the
// test ends.
type Program struct {
	t       testing.TB
	process *process
}

// Start starts the program at path, in a directory of its own.
func Start(t testing.TB, path string, args ...string) *Program {
	t.Helper()
	p := &Program{t, newProcess(t.TempDir(), path, args...)}
	if err := p.process.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.process.remove)
	return p
}

// Kill ends the program with SIGKILL.
func (p *Program) Kill() { p.end(syscall.SIGKILL) }

// Stop ends the program with SIGTERM and waits until it has ended.
func (p *Program) Stop() { p.end(syscall.SIGTERM) }

// Pause stops the program in the midst of what it does, until Resume. Windows
// cannot: the test fails there.
func (p *Program) Pause() { p.signal(sigPause) }

// Resume lets the program go on.
func (p *Program) Resume() { p.signal(sigResume) }

func (p *Program) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.process.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Program) end(sig syscall.Signal) {
	p.t.Helper()
	if err := p.process.end(sig); err != nil {
		p.t.Fatal(err)
	}
}

// Done is closed when the program has ended.
func (p *Program) Done() <-chan struct{} { return p.process.gone() }

// ExitCode is that of a program that is done, -1 if a signal has ended it.
func (p *Program) ExitCode() int {
	<-p.Done()
	return p.process.cmd.ProcessState.ExitCode()
}

// Log is what the program has written so far.
func (p *Program) Log() string {
	p.t.Helper()
	text, err := os.ReadFile(p.process.logPath)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
