package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
)

// FreePort returns an unused port, which no other test of this machine is given while this process
// runs: a server that starts late, or was killed and starts again, finds it free. The ports that lie
// above it at the given distances are kept with it. All lie below the systems' ephemeral range, so
// that no outgoing connection can take them either.
func FreePort(distances ...int) (int, error) {
	const lowest = 10_000
	highest := ephemeralPorts - slices.Max(append(distances, 0))
	for range 100 {
		port := lowest + rand.IntN(highest-lowest)
		if keep(port) && !slices.ContainsFunc(distances, func(d int) bool { return !keep(port + d) }) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", lowest, highest)
}

// keep reserves an unused TCP port for this process, until it ends: for that it binds the UDP
// port of the same number, which servers do not use.
func keep(port int) bool {
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	kept, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	unused, err := net.Listen("tcp", addr)
	if err != nil {
		_ = kept.Close()
		return false
	}
	_ = unused.Close()
	held.Store(port, kept)
	return true
}

// held are the sockets that keep ports: one that is garbage is closed.
var held sync.Map

// ephemeralPorts is the first port that Linux uses for outgoing connections; other systems begin
// higher.
const ephemeralPorts = 32_768
