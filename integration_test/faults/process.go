package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
)

// process is one process of Weir, which is started again when it ends by itself, as a
// container is.
type process struct {
	round *round
	name  string
	args  []string
	file  string // of its definitions

	mu      sync.Mutex
	wanted  bool             // to run
	program *testkit.Program // nil when it was stopped or killed
	logs    []string         // of those before
	exits   int
}

// newProcess is a process that is to be started, with the newest definitions.
func (r *round) newProcess(name, role string) *process {
	p := &process{round: r, name: name, file: filepath.Join(r.kit.TempDir(), "features.yaml")}
	p.args = append([]string{"run", "--roles", role, "--api.listen", "127.0.0.1:0", "--features", p.file}, r.settings()...)
	p.args = append(p.args, r.plan.settings()...)
	p.put(r.version)
	return p
}

// put gives the process a version of the definitions, as careful editors do.
func (p *process) put(version int) {
	text, _ := p.round.definitions(version)
	err := os.WriteFile(p.file+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(p.file+".new", p.file)
	}
	if err != nil {
		p.round.kit.Fatal(err)
	}
}

// restartAfter is how long a process that has ended by itself is left alone.
const restartAfter = 300 * time.Millisecond

func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
	if p.program == nil {
		p.run()
	}
}

// run starts the process, and sees to it that it is started again when it ends by itself.
func (p *process) run() {
	program := testkit.Start(p.round.kit, p.round.trials.binary, p.args...)
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

// forget notes the log of a process that is no more.
func (p *process) forget() {
	if p.program != nil {
		p.logs = append(p.logs, p.program.Log())
		p.program = nil
	}
}

// kill ends the process with SIGKILL, and stop lets it finish what is under way.
func (p *process) kill() { p.endBy((*testkit.Program).Kill) }
func (p *process) stop() { p.endBy((*testkit.Program).Stop) }

// end is kill, for the end of a round.
func (p *process) end() { p.kill() }

func (p *process) endBy(how func(*testkit.Program)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = false
	if p.program != nil {
		how(p.program)
	}
	p.forget()
}

// hang stops the process for a time in the midst of what it does.
func (p *process) hang(length time.Duration) {
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

// log is what the process and those before it have written.
func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := strings.Join(p.logs, "")
	if p.program != nil {
		all += p.program.Log()
	}
	return all
}

// url is where the process answers.
func (p *process) url() string {
	var url string
	wait(p.round.kit, time.Minute, p.name+" listens", func() (bool, string) {
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

// awaitVersion waits until the process works by definitions.
func (p *process) awaitVersion(version string) {
	url := p.url()
	wait(p.round.kit, time.Minute, p.name+" takes the definitions", func() (bool, string) {
		_, body := blackbox.Get(url + "/readyz")
		return strings.Contains(body, version), body
	})
}

// settings are those by which processes and commands reach the round's namespace.
func (r *round) settings() []string {
	return slices.Concat([]string{
		"--namespace", r.namespace(), "--shards", itoa(r.plan.Shards), "--kafka.group", r.namespace(),
		"--kafka.dead_letter_topic", deadLetters + r.suffix,
	}, r.kafka.settings(), r.redis.settings())
}

// settings are those of every process: fast for groups, small for batches.
func (p *plan) settings() []string {
	return []string{
		"--kafka.session_timeout", "2s", "--kafka.heartbeat_interval", "300ms", "--kafka.rebalance_timeout", "10s",
		"--processor.commit_interval", "100ms", "--processor.batch.max_events", itoa(p.BatchMax),
		"--api.timeout", "30s", // the questions of the comparison are great, and the machine may be busy
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
