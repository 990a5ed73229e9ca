package testkit

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

// runner keeps one server running: a local process or a container.
type runner interface {
	start() error
	// end sends the signal and waits until the server is gone. On a server
	// that is gone already it does nothing.
	end(sig syscall.Signal) error
	// signal sends a signal that does not end the server.
	signal(sig syscall.Signal) error
	// remove ends the server for good.
	remove()
	// gone is closed when the server has ended by itself or by end.
	gone() <-chan struct{}
	log() string
}

// process is a server as a child process that can be started again.
type process struct {
	path    string
	args    []string
	dir     string
	logPath string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
}

func newProcess(dir, path string, args ...string) *process {
	return &process{path: path, args: args, dir: dir, logPath: filepath.Join(dir, filepath.Base(path)+".log")}
}

func (p *process) start() error {
	out, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, out
	cmd.SysProcAttr = dieWithParent()
	if err := spawn(cmd); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // a killed server's exit code says nothing
		close(exited)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.exited = cmd, exited
	return nil
}

func (p *process) end(sig syscall.Signal) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	_ = cmd.Process.Signal(sig) // fails only when it has exited
	if sig == syscall.SIGKILL {
		killFamily(cmd.Process.Pid)
	}
	select {
	case <-exited:
		return nil
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		<-exited
		return fmt.Errorf("%s did not end within 30s of %v and was killed", p.path, sig)
	}
}

func (p *process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Signal(sig)
}

func (p *process) remove() { _ = p.end(syscall.SIGKILL) }

func (p *process) gone() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exited
}

// log returns the last lines the server wrote, for the error of a failed
// start.
func (p *process) log() string {
	text, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

var spawns = make(chan func())

// The kernel's parent-death signal is sent when the thread that forked ends,
// not the process, so every child is forked from one thread that never does.
var spawner = sync.OnceFunc(func() {
	go func() {
		runtime.LockOSThread()
		for f := range spawns {
			f()
		}
	}()
})

func spawn(cmd *exec.Cmd) error {
	spawner()
	started := make(chan error)
	spawns <- func() { started <- cmd.Start() }
	return <-started
}
