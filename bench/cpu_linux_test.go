package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// processCPU returns the CPU time, in seconds, that a process has used.
func processCPU(b *testing.B, pid int) (seconds float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	const user, system, ticks = 11, 12, 100 // of proc(5), after the name; ticks a second
	for _, field := range []int{user, system} {
		n, err := strconv.ParseFloat(strings.Fields(after)[field], 64)
		if err != nil {
			b.Fatal(err)
		}
		seconds += n / ticks
	}
	return seconds
}
