//go:build race

package testkit

// Race reports whether this program was built with the race detector: if so, the binaries that it
// starts must be too, and limits of time and memory do not apply.
const Race = true
