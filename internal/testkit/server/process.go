package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Runner runs one server: a local process or a container.
type Runner interface {
	// Start starts the server, also after End.
	Start() error
	// End sends the signal and waits until the server is gone. If the server is gone already, it
	// does nothing.
	End(sig syscall.Signal) error
	// Signal sends a signal that does not end the server.
	Signal(sig syscall.Signal) error
	// Remove ends the server for good.
	Remove()
	// Gone is closed when the server has ended by itself or by End.
	Gone() <-chan struct{}
	// Log returns the last lines that the server wrote, for the error of a failed start.
	Log() string
}

// Process is a server as a child process that can be restarted.
type Process struct {
	path    string
	args    []string
	dir     string
	LogPath string // the file for its output

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
}

// NewProcess describes the program at path, which runs in dir and writes its log there.
func NewProcess(dir, path string, args ...string) *Process {
	return &Process{path: path, args: args, dir: dir, LogPath: filepath.Join(dir, filepath.Base(path)+".log")}
}

// Start starts the program, also after it has ended.
func (p *Process) Start() error {
	out, err := os.OpenFile(p.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, out
	cmd.SysProcAttr = dieWithParent()
	if err := Spawn(cmd); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // a killed server has no useful exit code
		close(exited)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.exited = cmd, exited
	return nil
}

// endWithin bounds the end of a program: its own time to finish, as long as its settings give it, and what a busy machine
// adds.
const endWithin = 2 * time.Minute

// End sends the signal and waits. A program that does not end in time is killed, and End returns an
// error.
func (p *Process) End(sig syscall.Signal) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	_ = cmd.Process.Signal(sig) // fails only if it has exited
	if sig == syscall.SIGKILL {
		killFamily(cmd.Process.Pid)
	}
	select {
	case <-exited:
		return nil
	case <-time.After(endWithin):
		_ = cmd.Process.Kill()
		<-exited
		return fmt.Errorf("%s did not end within %v of %v and was killed", p.path, endWithin, sig)
	}
}

// Signal sends a signal that does not end the program.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Signal(sig)
}

// Remove kills the program.
func (p *Process) Remove() { _ = p.End(syscall.SIGKILL) }

// Gone is closed when the program has ended.
func (p *Process) Gone() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exited
}

// PID returns the ID of the process that was started last.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// ExitCode waits for the end and returns the exit code, -1 if a signal ended the program.
func (p *Process) ExitCode() int {
	<-p.Gone()
	return p.cmd.ProcessState.ExitCode()
}

// Log returns the last lines that the server wrote, for the error of a failed start.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.LogPath)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

var spawns = make(chan func())

// The kernel sends the parent-death signal when the thread that forked ends, not when the process ends, so every child
// is forked from one thread that never ends.
var spawner = sync.OnceFunc(func() {
	go func() {
		runtime.LockOSThread()
		for f := range spawns {
			f()
		}
	}()
})

// Spawn starts a command that dies with this process, even if this process is killed.
func Spawn(cmd *exec.Cmd) error {
	spawner()
	started := make(chan error)
	spawns <- func() { started <- cmd.Start() }
	return <-started
}
