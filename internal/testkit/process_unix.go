//go:build unix

package testkit

import "syscall"

const (
	sigPause  = syscall.SIGSTOP
	sigResume = syscall.SIGCONT
)

// running says whether there is a process of that number.
func running(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }
