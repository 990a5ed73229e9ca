package redistest

import (
	"sync"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/server"
)

var sharedCluster struct {
	sync.Mutex
	cluster *Cluster
}

// SharedCluster returns the cluster of three masters that all tests of this binary share. A test uses
// only keys under its [testkit.Namespace], never flushes, ends no server and moves no slot.
func SharedCluster(t testing.TB) *Cluster {
	t.Helper()
	sharedCluster.Lock()
	defer sharedCluster.Unlock()
	if sharedCluster.cluster == nil {
		c := startCluster(lasting{t}, 3, &Cluster{gone: patience})
		c.announce(t, true)
		sharedCluster.cluster = c
	}
	return sharedCluster.cluster
}

// lasting is a test whose servers outlive it: they end with the binary.
type lasting struct{ testing.TB }

func (lasting) Cleanup(end func()) { server.AtEnd(end) }

func (l lasting) TempDir() string {
	l.Helper()
	dir, err := server.SharedDir()
	if err != nil {
		l.Fatal(err)
	}
	return dir
}
