package server

import (
	"os"
	"syscall"
)

// Windows cannot pause a process. [os.Process.Signal] refuses these there, by
// Unix's numbers, so that a test that pauses fails and says so.
const (
	Pause  = syscall.Signal(19)
	Resume = syscall.Signal(18)
)

// Running says whether there is a process of that number: one that is not
// there cannot be opened.
func Running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
