package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// handedOut are the ports that this process has given to servers. A server that starts late leaves
// its port free for a while, and no other may get it.
var handedOut sync.Map

// FreePort returns an unused port below limit, never the same one twice. It lies below the systems'
// ephemeral range, so that no outgoing connection can take it while its server is down between a
// kill and the next start.
func FreePort(limit int) (int, error) {
	const lowest = 10_000
	for range 100 {
		port := lowest + rand.IntN(limit-lowest)
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", lowest, limit)
}

// EphemeralPorts is the first port that Linux uses for outgoing connections; other systems begin
// higher.
const EphemeralPorts = 32_768
