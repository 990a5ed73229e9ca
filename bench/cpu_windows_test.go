package bench

import (
	"math"
	"os"
	"syscall"
	"time"
)

// cpuSeconds returns the CPU time of this process so far.
func cpuSeconds() float64 {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		panic(err) // cannot fail for the own process
	}
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		panic(err) // fails only for invalid arguments
	}
	return (duration(kernel) + duration(user)).Seconds()
}

// duration converts a time in Windows' units of 100 ns.
func duration(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100 * time.Nanosecond
}

// peakMiB returns NaN: Windows does not report the peak memory of a process that has ended.
func peakMiB(*os.ProcessState) float64 { return math.NaN() }
