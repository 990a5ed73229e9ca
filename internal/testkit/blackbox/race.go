//go:build race

package blackbox

// Race says whether this program was built with the race detector: then the binary that it
// tries is to be, too.
const Race = true
