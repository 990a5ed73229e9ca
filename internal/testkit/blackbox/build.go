package blackbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build builds the binary of Weir into a folder, optionally with the race detector, and returns its
// path.
func Build(dir string, race bool) (path string, err error) {
	path = filepath.Join(dir, "weir")
	args := []string{"build", "-o", path}
	if race {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/weir-stream/weir/cmd/weir")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return path, nil
}
