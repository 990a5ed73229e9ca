package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
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

// AwaitRewritten waits until the append-only file of a server that was started again is rewritten,
// unless no script has run since. Only then may the server crash again: Redis 7.0 runs what a crash
// has torn when it reads the file a second time, see "The append-only file is torn" in
// docs/exactly-once.md.
func (r *Server) AwaitRewritten() {
	r.t.Helper()
	if !r.aof || !r.again {
		return
	}
	client := r.Client(r.t)
	testkit.Eventually(r.t, 2*time.Minute, "the append-only file is rewritten", func() (bool, string) {
		info, err := client.InfoMap(context.Background(), "persistence", "commandstats").Result()
		if err != nil {
			return false, err.Error()
		}
		file := info["Persistence"]
		rewritten := file["aof_last_rewrite_time_sec"] != "-1" && file["aof_rewrite_in_progress"] == "0"
		return rewritten || info["Commandstats"]["cmdstat_evalsha"] == "", fmt.Sprint(file)
	})
}
