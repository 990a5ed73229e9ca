package kafkatest

import (
	"fmt"
	"maps"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// NewBehind starts a broker of the test's own that clients reach at a proxy's address,
// on a listener apart. What the broker asks of itself, such as the ends of transactions, and
// who asks at Addr, does not pass through the proxy.
func NewBehind(t testing.TB, link *testkit.FaultyProxy, opts Options) *Broker {
	t.Helper()
	server.MustChoose(t, "Kafka", server.FromMachine(lackJava)) // its ports are not those of a container
	port, err := server.FreePort(server.EphemeralPorts)
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]string{
		"+listeners":                      fmt.Sprintf("CLIENT://127.0.0.1:%d", port),
		"+advertised.listeners":           "CLIENT://" + link.Addr(),
		"+listener.security.protocol.map": "CLIENT:PLAINTEXT",
	}
	maps.Copy(config, opts.Config)
	opts.Config = config
	b := New(t, opts)
	link.Retarget(fmt.Sprintf("127.0.0.1:%d", port))
	return b
}
