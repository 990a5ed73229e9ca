package server

import (
	"os"
	"syscall"
)

// Windows cannot pause a process. [os.Process.Signal] refuses these numbers of Unix there, so a
// test that pauses fails with its message.
const (
	Pause  = syscall.Signal(19)
	Resume = syscall.Signal(18)
)

// Running reports whether a process with this ID exists; only an existing one can be opened.
func Running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
