package testkit

import (
	"os"
	"syscall"
)

// Windows cannot pause a process. [os.Process.Signal] refuses these there, by
// Unix's numbers, so that a test that pauses fails and says so.
const (
	sigPause  = syscall.Signal(19)
	sigResume = syscall.Signal(18)
)

// running says whether there is a process of that number: one that is not
// there cannot be opened.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
