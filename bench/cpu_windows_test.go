package bench

import (
	"math"
	"os"
	"syscall"
	"time"
)

// cpuSeconds is the CPU time of this process so far.
func cpuSeconds() float64 {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		panic(err) // a process can always tell itself
	}
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		panic(err) // it only fails for bad arguments
	}
	return (duration(kernel) + duration(user)).Seconds()
}

// duration is a time that Windows counts in units of 100 ns.
func duration(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100 * time.Nanosecond
}

// peakMiB is the most memory that a process held at a time, which Windows does not say of
// one that has ended.
func peakMiB(*os.ProcessState) float64 { return math.NaN() }
