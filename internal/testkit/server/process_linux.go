package server

import "syscall"

// dieWithParent makes the kernel kill the child when the test binary is gone, even by SIGKILL. The
// child leads a process group of its own; see killFamily.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// killFamily kills a server and the processes that it has forked, such as the one that rewrites Redis' append-only
// file: it would continue to write to a folder that is removed.
func killFamily(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
