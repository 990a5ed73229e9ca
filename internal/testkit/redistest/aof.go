package redistest

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// TearAOF cuts up to most bytes off the end of a killed server's append-only file, as a power loss
// does, and returns how many it cut.
func (r *Server) TearAOF(most int64) (cut int64) {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, "appendonlydir", "*.incr.aof"))
	if err != nil {
		r.t.Fatal(err)
	}
	if len(files) == 0 { // before Redis 7 it is a single file
		files = []string{filepath.Join(r.dir, "appendonly.aof")}
	}
	newest := slices.MaxFunc(files, func(a, b string) int { return modified(a).Compare(modified(b)) })
	info, err := os.Stat(newest)
	if err != nil {
		r.t.Fatal(err)
	}
	cut = min(most, info.Size())
	if err := os.Truncate(newest, info.Size()-cut); err != nil {
		r.t.Fatal(err)
	}
	return cut
}

// modified returns when a file was last written to; the zero time if it is gone.
func modified(file string) (t time.Time) {
	if info, err := os.Stat(file); err == nil {
		t = info.ModTime()
	}
	return t
}
