package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
)

// A process that runs for long starts over with a higher timer slack, as the same process, and says so in its
// environment. Commands do not wait for that.
func TestOnlyRunRaisesItsTimerSlack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   []string
		raised bool
	}{
		{[]string{"run", "--config"}, true},
		{[]string{"doctor", "--config"}, false},
	} {
		// The command waits for what is written into the pipe.
		settings := filepath.Join(t.TempDir(), "weir.yaml")
		if err := syscall.Mkfifo(settings, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], append(c.args, settings)...)
		cmd.Env = append(os.Environ(), asWeir+"=1")
		var out screen
		cmd.Stderr = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var pipe *os.File
		testkit.Eventually(t, patience, "the settings are open", func() (bool, string) {
			var err error
			pipe, err = os.OpenFile(settings, os.O_WRONLY|syscall.O_NONBLOCK, 0) // fails while nobody reads
			return err == nil, fmt.Sprintf("%v; weir %s says %q", err, c.args[0], out.String())
		})
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(environment), "\x00TIMERSLACK_NS=500000\x00"); got != c.raised {
			t.Errorf("weir %s raises its timer slack: %t, want %t", c.args[0], got, c.raised)
		}
		if _, err := pipe.WriteString("nonsense: 1\n"); err != nil {
			t.Fatal(err)
		}
		if err := pipe.Close(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "nonsense") {
			t.Errorf("weir %s: %v, %s, want an error about the settings", c.args[0], err, out.String())
		}
	}
}
