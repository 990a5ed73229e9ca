// Package say formats counts and the like for the output of commands.
package say

import (
	"fmt"

	"github.com/weir-stream/weir/features"
)

// Summary describes what a registry contains.
func Summary(r *features.Registry) string {
	return fmt.Sprintf("%s of %s in %s, %s", Number(len(r.Features), "feature"), Number(len(r.Streams), "stream"),
		Number(len(r.Series), "state series"), Number(len(r.Services), "service"))
}

// Number returns a count with its noun, which is the same for all numbers if it ends in s.
func Number(n int, noun string) string {
	if n != 1 && noun[len(noun)-1] != 's' {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
