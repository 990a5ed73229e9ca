package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
)

// Redis is the Redis of a round: a [Single], a [Sentinel] or a [Cluster].
type Redis interface {
	// Settings returns the flags with which processes of Weir reach it.
	Settings() []string
	// Client returns a client that connects as a process does; it is closed with the kit of the
	// round.
	Client() redis.UniversalClient
	// Master returns a server that holds the state now; n selects one if there are several.
	Master(n int) *Node
	// MasterOf returns the server that holds a key now, if all work.
	MasterOf(key string) *Node
	// Standby returns a server that follows a master now; n selects one if there are several. All servers work.
	Standby(k *Kit, n int) *Standby
	// AwaitServing waits up to a minute until all servers work.
	AwaitServing(k *Kit)
}

// Standby is a replica that may be cut off from its master, and then take its place.
type Standby struct {
	// CutOff cuts it off from its master: it has no later writes.
	CutOff func()
	// TakeOver kills the master and gives its place to the standby, with what that has. The old master follows it, unless
	// nobody knows it any more.
	TakeOver func()
}

// takeOver lets a replica that hangs take the place of its master, once the master is dead. promote promotes it, or fails
// if that is not possible yet.
func takeOver(k *Kit, master, replica *Node, promote func(ctx context.Context) error) {
	master.Kill()
	replica.Resume()
	testkit.Eventually(k, time.Minute, "a replica takes over", func() (bool, string) {
		if replica.isMaster() {
			return true, ""
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return false, fmt.Sprint(promote(ctx))
	})
	master.Start()
}
