// Package say formats counts and the like for the output of commands.
package say

import (
	"fmt"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/spelling"
)

// Summary describes what a registry contains.
func Summary(r *features.Registry) string {
	return fmt.Sprintf("%s of %s in %s, %s", spelling.Counted(len(r.Features), "feature"), spelling.Counted(len(r.Streams), "stream"),
		spelling.Counted(len(r.Series), "state series"), spelling.Counted(len(r.Services), "service"))
}
