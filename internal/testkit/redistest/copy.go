package redistest

import (
	"context"
	"os"
	"path/filepath"
)

// Copy is a server's data as of one moment.
type Copy struct{ dir string }

// SaveCopy copies the data of the running server. The copy has all writes that were acknowledged
// before.
func (r *Server) SaveCopy() Copy {
	r.t.Helper()
	if !r.aof {
		if err := r.Client(r.t).Save(context.Background()).Err(); err != nil {
			r.t.Fatalf("save %s: %v", r.addr, err)
		}
	}
	to := Copy{r.t.TempDir()}
	if err := os.CopyFS(to.dir, os.DirFS(r.dir)); err != nil {
		r.t.Fatal(err)
	}
	return to
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
