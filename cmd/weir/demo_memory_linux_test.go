package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The demo forgets the events that are applied: many more than fit, as fast as
// they are taken, need no more memory than a few.
func TestDemoMemoryIsBounded(t *testing.T) {
	const most = 350_000 // kB
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	demo := exec.CommandContext(t.Context(), program, "demo", "--listen", "127.0.0.1:0", "--events", "80000", "--exit")
	demo.Env = append(os.Environ(), asWeir+"=1")
	out, err := demo.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"applied":80000,`) {
		t.Fatalf("%v\n%s", err, out)
	}
	if held := demo.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; held > most {
		t.Errorf("it took %d kB of memory, more than %d", held, most)
	}
}
