package testkit

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var unsafeInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace returns a name that no other test or run has: letters, digits and
// hyphens, for Redis namespaces, topics and consumer groups.
func Namespace(t testing.TB) string {
	name := strings.Trim(unsafeInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	name = strings.Trim(name[:min(len(name), 40)], "-")
	return name + "-" + strings.ToLower(rand.Text()[:8])
}

// handedOut are the ports this process has given to servers. A server that starts late
// leaves its port free for a while, and it must not be given to another.
var handedOut sync.Map

// freePort returns a port nobody listens on, below limit, and never the same
// one twice. It lies under the systems' ephemeral range: no outgoing
// connection can take it while its server is down between a kill and the next
// start.
func freePort(limit int) (int, error) {
	const lowest = 10_000
	for range 100 {
		port := lowest + mathrand.IntN(limit-lowest)
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

// ephemeralPorts is where Linux begins to take ports for outgoing
// connections; the other systems begin higher.
const ephemeralPorts = 32_768
