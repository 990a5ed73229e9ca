//go:build unix

package server

import "syscall"

// The signals that stop a process in the midst of what it does, and let it go on.
const (
	Pause  = syscall.SIGSTOP
	Resume = syscall.SIGCONT
)

// Running says whether there is a process of that number.
func Running(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }
