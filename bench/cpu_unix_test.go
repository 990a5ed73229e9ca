//go:build unix

package bench

import (
	"syscall"
	"time"
)

// cpuSeconds is the CPU time of this process so far.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it only fails for bad arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
