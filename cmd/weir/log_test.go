//go:build unix

package main

import (
	"syscall"
	"testing"
)

func TestSignals(t *testing.T) {
	flags, _ := servers(t, allTopics)
	p := start(t, append([]string{"run", "--roles", "api", "--log.level", "info"}, flags...)...)
	p.address(t)
	for _, step := range []struct {
		signal syscall.Signal
		want   string
	}{
		{syscall.SIGUSR1, `msg="log level is changed" to=DEBUG`}, {syscall.SIGUSR2, `msg="log level is changed" to=INFO`},
		{syscall.SIGHUP, `msg="SIGHUP changes nothing: `}, // and does not end the process
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
