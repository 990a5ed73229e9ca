package timerslack

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

// executed is set in the environment of a process that Raise has executed again, to the slack in nanoseconds. Raise does
// so once, also where the kernel forgets the slack.
const executed = "TIMERSLACK_NS"

// Raise raises the timer slack of all threads, which is 50 µs by default, and starts the process over: it must be called
// before anything else happens. Go's monitor thread sleeps for 20 µs at a time while anything runs. It exists before
// main, changing the slack of another thread takes a privilege, and a thread inherits the slack of the one that made it,
// also through exec(2). If the slack is as high already, or cannot be raised, it does nothing.
func Raise(to time.Duration) {
	if now, err := slack(); err != nil || now >= to || os.Getenv(executed) != "" {
		return
	}
	program, err := os.Executable()
	if err != nil {
		return
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, uintptr(to), 0); errno != 0 {
		return
	}
	// It returns only if it fails. The process then goes on, with one thread that is woken late.
	_ = syscall.Exec(program, os.Args, append(os.Environ(), executed+"="+strconv.FormatInt(to.Nanoseconds(), 10)))
}

// slack returns the timer slack of the current thread.
func slack() (time.Duration, error) {
	ns, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_TIMERSLACK, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return time.Duration(ns), nil
}
