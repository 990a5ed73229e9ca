package testkit

import (
	"fmt"
	"maps"
	"testing"
)

// NewKafkaBehind starts a broker of the test's own that clients reach at a proxy's address,
// on a listener apart. What the broker asks of itself, such as the ends of transactions, and
// who asks at Addr, does not pass through the proxy.
func NewKafkaBehind(t testing.TB, link *FaultyProxy, opts KafkaOptions) *Broker {
	t.Helper()
	mustChoose(t, "Kafka", offer{local, lackLocalKafka}) // its ports are not those of a container
	port, err := freePort(ephemeralPorts)
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
	b := NewKafka(t, opts)
	link.Retarget(fmt.Sprintf("127.0.0.1:%d", port))
	return b
}
