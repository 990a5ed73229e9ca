//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/weir-stream/weir/config"
)

func TestLogLevel(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out screen
		log, level := newLogger(&out, config.Log{Level: "error", Format: format})
		var shown []string
		for range 5 {
			before := out.String()
			log.Debug("d")
			log.Info("i")
			log.Warn("w")
			log.Error("e")
			shown = append(shown, strings.Join(strings.Fields(strings.TrimPrefix(out.String(), before)), " "))
			level.more()
		}
		for i, want := range []int{1, 2, 3, 4, 4} {
			if n := strings.Count(shown[i], "msg"); n != want {
				t.Errorf("%d times more: %d lines, want %d: %s", i, n, want, shown[i])
			}
		}
		level.reset()
		before := out.String()
		level.tell(log)
		if got := strings.TrimPrefix(out.String(), before); !strings.Contains(got, "log level is changed") || !strings.Contains(got, "ERROR") {
			t.Errorf("a logger of errors tells %q", got)
		}
	}
}

func TestSignalsChangeTheLogLevel(t *testing.T) {
	flags, _ := servers(t, allTopics)
	p := start(t, append([]string{"run", "--roles", "api", "--log.level", "info"}, flags...)...)
	p.address(t)
	for _, step := range []struct {
		signal syscall.Signal
		want   string
	}{
		{syscall.SIGUSR1, `msg="log level is changed" to=DEBUG`}, {syscall.SIGUSR2, `msg="log level is changed" to=INFO`},
	} {
		if err := syscall.Kill(syscall.Getpid(), step.signal); err != nil {
			t.Fatal(err)
		}
		p.shows(t, step.want)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
}
