//go:build race

package testkit

// Race says whether this program was built with the race detector: then a binary that it
// starts is to be, too, and bounds of time and memory do not hold.
const Race = true
