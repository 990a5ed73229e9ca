package timerslack

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// raiseEnv makes the test binary raise its slack to that time and print its process ID, its arguments and the slack of
// its first thread, from which all others have inherited theirs.
const raiseEnv = "RAISE_TIMER_SLACK"

func TestMain(m *testing.M) {
	to := os.Getenv(raiseEnv)
	if to == "" {
		os.Exit(m.Run())
	}
	d, err := time.ParseDuration(to)
	if err != nil {
		panic(err)
	}
	Raise(d)
	now, err := slack()
	fmt.Println(os.Getpid(), os.Args[1:], now, err)
}

// init keeps the main goroutine on the process's first thread.
func init() { runtime.LockOSThread() }

func TestRaiseStartsTheProcessOver(t *testing.T) {
	before, err := slack()
	if err != nil {
		t.Fatal(err)
	}
	raised := (before + 450*time.Microsecond).String()
	for _, c := range []struct{ to, environment, want string }{
		{raised, "", raised},
		{"1ns", "", before.String()},                    // it is higher
		{raised, executed + "=500000", before.String()}, // the kernel forgot it
	} {
		cmd := exec.Command(os.Args[0], "an argument")
		cmd.Env = append(os.Environ(), raiseEnv+"="+c.to, c.environment)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got, want := strings.TrimSpace(string(out)), fmt.Sprintf("%d [an argument] %s <nil>", cmd.Process.Pid, c.want); got != want {
			t.Errorf("raised to %s with %q: got %q, want %q", c.to, c.environment, got, want)
		}
	}
}
