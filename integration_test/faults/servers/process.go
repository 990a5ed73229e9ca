package servers

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
)

// Process is one process of Weir. It is restarted when it exits by itself, as a container is.
type Process struct {
	Name string // for messages
	File string // the definitions

	kit    *Kit
	binary string
	args   []string

	mu      sync.Mutex
	wanted  bool             // supposed to run
	program *testkit.Program // nil if stopped or killed
	logs    []string         // of earlier programs
	exits   int
}

// NewProcess returns a process of a binary of Weir, not yet started, with a role, the text of its
// definitions, and settings as flags.
func NewProcess(k *Kit, name, binary, role, definitions string, settings ...string) *Process {
	p := &Process{kit: k, Name: name, binary: binary, File: filepath.Join(k.TempDir(), "features.yaml")}
	p.args = append([]string{"run", "--roles", role, "--api.listen", "127.0.0.1:0", "--features", p.File}, settings...)
	p.Put(definitions)
	return p
}

// Put replaces the process's definitions atomically, as careful editors do.
func (p *Process) Put(definitions string) {
	err := os.WriteFile(p.File+".new", []byte(definitions), 0o600)
	if err == nil {
		err = os.Rename(p.File+".new", p.File)
	}
	if err != nil {
		p.kit.Fatal(err)
	}
}

// restartAfter is the delay before a process that has exited by itself is restarted.
const restartAfter = 300 * time.Millisecond

// Start starts the process if it does not run.
func (p *Process) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
	if p.program == nil {
		p.run()
	}
}

// run starts the process, and restarts it when it exits by itself.
func (p *Process) run() {
	program := testkit.Start(p.kit, p.binary, p.args...)
	p.program = program
	go func() {
		<-program.Done()
		time.Sleep(restartAfter)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.program == program && p.wanted {
			p.exits++
			p.forget()
			p.run()
		}
	}()
}

// forget keeps the log of a program that has ended.
func (p *Process) forget() {
	if p.program != nil {
		p.logs = append(p.logs, p.program.Log())
		p.program = nil
	}
}

// Kill ends the process with SIGKILL.
func (p *Process) Kill() { p.endBy((*testkit.Program).Kill) }

// Stop ends the process with SIGTERM, which lets it finish its work.
func (p *Process) Stop() { p.endBy((*testkit.Program).Stop) }

// Abort ends the process, which logs where its goroutines wait.
func (p *Process) Abort() { p.endBy((*testkit.Program).Abort) }

func (p *Process) endBy(how func(*testkit.Program)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = false
	if p.program != nil {
		how(p.program)
	}
	p.forget()
}

// Hang suspends the process for a time.
func (p *Process) Hang(length time.Duration) {
	p.mu.Lock()
	program := p.program
	p.mu.Unlock()
	if program == nil {
		return
	}
	program.Pause()
	time.Sleep(length)
	program.Resume()
}

// Exits returns how often the process has exited by itself and was restarted.
func (p *Process) Exits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exits
}

// Log returns what the process has written, earlier programs included.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := strings.Join(p.logs, "")
	if p.program != nil {
		all += p.program.Log()
	}
	return all
}

// URL returns the base URL of the process, once it listens.
func (p *Process) URL() string {
	var url string
	testkit.Eventually(p.kit, time.Minute, p.Name+" listens", func() (bool, string) {
		p.mu.Lock()
		program := p.program
		p.mu.Unlock()
		if program == nil {
			return false, "it is being started"
		}
		var ok bool
		url, ok = blackbox.Listening(program.Log())
		return ok, program.Log()
	})
	return url
}

// AwaitVersion waits until the process uses a version of the definitions.
func (p *Process) AwaitVersion(version string) {
	url := p.URL()
	testkit.Eventually(p.kit, time.Minute, p.Name+" takes the definitions", func() (bool, string) {
		_, body := blackbox.Get(url + "/readyz")
		return strings.Contains(body, version), body
	})
}
