package kafkatest

import (
	"fmt"
	"maps"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// NewBehind starts a broker that only this test uses, with a listener that clients reach at a
// proxy's address. The broker's own requests, such as the ends of transactions, and requests to
// Addr bypass the proxy.
func NewBehind(t testing.TB, link *testkit.FaultyProxy, opts Options) *Broker {
	t.Helper()
	server.MustChoose(t, "Kafka", server.FromMachine(lackJava)) // a container has other ports
	port, err := server.FreePort()
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
