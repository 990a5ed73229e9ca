package ignite

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/store"
)

// A cache that Ignite's configuration has is refused where state would be lost in it: what empties a shard would empty others too,
// steps would be made in part, or a part of a partition would be taken for all of it.
func TestAnotherCache(t *testing.T) {
	const (
		transactional = `<property name="atomicityMode" value="TRANSACTIONAL"/>`
		safe          = `<property name="partitionLossPolicy" value="READ_WRITE_SAFE"/>`
	)
	wrong := map[string]string{
		"the cache exists, and does not have Ignite's own affinity with 1024 partitions": transactional + safe + `<property name="affinity">
			<bean class="org.apache.ignite.cache.affinity.rendezvous.RendezvousAffinityFunction"><property name="partitions" value="64"/></bean></property>`,
		"the cache exists, and is not transactional and partitioned":             "",
		"the cache exists, and its partition loss policy is not READ_WRITE_SAFE": transactional,
		"": transactional + safe,
	}
	caches, names := map[string]string{}, map[string]string{}
	for want, properties := range wrong {
		names[want] = testkit.Namespace(t)
		caches[names[want]] = properties
	}
	c := client(t, ignitetest.NewWith(t, &ignitetest.Options{Nodes: 1, Caches: caches}))
	for want, name := range names {
		err := New(Config{Client: c, Namespace: name, Shards: 2, Slack: time.Hour}).Create(t.Context())
		text := "make the cache " + name + ": the namespace has another layout: " + want
		if want == "" && err != nil || want != "" && (!errors.Is(err, store.ErrLayout) || err.Error() != text) {
			t.Errorf("got %v, want %s", err, text)
		}
	}
}
