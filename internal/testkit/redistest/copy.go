package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
)

// Copy is a server's data as of one moment.
type Copy struct{ dir string }

// SaveCopy copies the data of the running server. The copy has all writes that were acknowledged
// before.
func (r *Server) SaveCopy() (to Copy) {
	r.t.Helper()
	client := r.Client(r.t)
	if !r.aof {
		if err := client.Save(context.Background()).Err(); err != nil {
			r.t.Fatalf("save %s: %v", r.addr, err)
		}
	}
	testkit.Eventually(r.t, 2*time.Minute, "the files are copied with no rewrite meanwhile", func() (bool, string) {
		before, rewriting, err := rewrites(client)
		if err != nil || rewriting {
			return false, fmt.Sprintf("rewriting: %t, %v", rewriting, err)
		}
		to = Copy{r.t.TempDir()}
		copied := os.CopyFS(to.dir, os.DirFS(r.dir))
		after, rewriting, err := rewrites(client)
		if err != nil || rewriting || after != before {
			return false, fmt.Sprintf("rewriting: %t, %s forks after %s, %v", rewriting, after, before, err)
		}
		if copied != nil {
			r.t.Fatal(copied)
		}
		return true, ""
	})
	return to
}

// rewrites returns how many children the server has ever forked, and whether one of them is, or will
// be, rewriting the append-only file. A rewrite replaces files, so a copy of the directory would have
// some from before it and some from after it.
func rewrites(client *redis.Client) (forks string, rewriting bool, err error) {
	info, err := client.InfoMap(context.Background(), "persistence", "stats").Result()
	if err != nil {
		return "", false, err
	}
	file := info["Persistence"]
	return info["Stats"]["total_forks"], file["aof_rewrite_in_progress"] != "0" || file["aof_rewrite_scheduled"] != "0", nil
}

// clusterFile is what a server knows of its cluster. It is not data: a node with an older file
// would claim slots that others own by now.
const clusterFile = "nodes.conf"

// RestoreCopy kills the server and starts it with an older copy of its data, as a failover to a
// replica without the latest writes does.
func (r *Server) RestoreCopy(c Copy) {
	r.t.Helper()
	r.Kill()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == clusterFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.dir, e.Name())); err != nil {
			r.t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, clusterFile)); err == nil {
		_ = os.Remove(filepath.Join(c.dir, clusterFile)) // an earlier restore may have removed it
	}
	if err := os.CopyFS(r.dir, os.DirFS(c.dir)); err != nil {
		r.t.Fatal(err)
	}
	r.Start()
}
