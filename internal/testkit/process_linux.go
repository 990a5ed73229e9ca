package testkit

import "syscall"

// dieWithParent has the kernel kill the child when the test binary is gone,
// even by SIGKILL.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
