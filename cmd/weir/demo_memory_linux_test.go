package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
)

// The demo drops applied events: far more events than fit into memory, written as fast as they are
// accepted, need no more of it than a few.
func TestDemoMemoryIsBounded(t *testing.T) {
	events, most := 80_000, int64(350_000) // kB
	if testkit.Race {
		events, most = 8_000, math.MaxInt64 // the race detector uses several times the program's memory
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	demo := exec.CommandContext(t.Context(), program, "demo", "--listen", "127.0.0.1:0", "--events", strconv.Itoa(events), "--exit")
	demo.Env = append(os.Environ(), asWeir+"=1")
	out, err := demo.CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf(`"applied":%d,`, events)) {
		t.Fatalf("the demo has not applied all events: error %v, output\n%s", err, out)
	}
	if held := demo.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; held > most {
		t.Errorf("the demo took %d kB of memory, want at most %d", held, most)
	}
}
