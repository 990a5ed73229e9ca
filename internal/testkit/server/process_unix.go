//go:build unix

package server

import "syscall"

// These signals suspend a process and resume it.
const (
	Pause  = syscall.SIGSTOP
	Resume = syscall.SIGCONT
)

// Running reports whether a process with this ID exists.
func Running(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }
