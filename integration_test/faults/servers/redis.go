package servers

import "github.com/redis/go-redis/v9"

// Redis is the Redis of a round: a [Single], a [Sentinel] or a [Cluster].
type Redis interface {
	// Settings returns the flags with which processes of Weir reach it.
	Settings() []string
	// Client returns a client that connects as a process does; it is closed with the kit of the
	// round.
	Client() redis.UniversalClient
	// Master returns a server that holds the state now; n selects one if there are several.
	Master(n int) *Node
	// AwaitServing waits up to a minute until all servers work.
	AwaitServing(k *Kit)
}
