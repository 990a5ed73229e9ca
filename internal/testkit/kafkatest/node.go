package kafkatest

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
)

// node is a broker of a cluster (KRaft).
type node struct {
	id         int
	cluster    string // cluster ID
	port       int
	controller int    // the port of the node's controller; 0 if it has none
	voter      string // the address of the cluster's controller, which is node 1
	advertised string // the controller's address for other nodes; by default the one it listens at
	host       bool   // a container uses the host's network
}

// clusterID is any 16 bytes in base64. Brokers of different tests never connect to each other.
const clusterID = "4L6g3nShT-eMCtK--X86sw"

// newClusterID returns a random ID that does not begin with a hyphen, which a command would take
// for an option.
func newClusterID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id[1:]) // never fails
	return base64.RawURLEncoding.EncodeToString(id)
}

const metaProperties = "meta.properties"

// name writes the names of a node into its storage, all that the storage of a broker needs which is not a controller.
func (n node) name(data string) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf("version=1\nnode.id=%d\ncluster.id=%s\ndirectory.id=%s\n", n.id, n.cluster, newClusterID())
	return os.WriteFile(filepath.Join(data, metaProperties), []byte(text), 0o600)
}

// properties returns the settings of a node that listens on bind and is reached at host.
func (n node) properties(bind, host string) map[string]string {
	roles, listeners := "broker", fmt.Sprintf("PLAINTEXT://%s:%d", bind, n.port)
	if n.controller != 0 {
		roles += ",controller"
		listeners += fmt.Sprintf(",CONTROLLER://127.0.0.1:%d", n.controller)
	}
	advertised := fmt.Sprintf("PLAINTEXT://%s:%d", host, n.port)
	if n.advertised != "" {
		advertised += ",CONTROLLER://" + n.advertised
	}
	props := map[string]string{
		"process.roles":                  roles,
		"node.id":                        fmt.Sprint(n.id),
		"controller.quorum.voters":       "1@" + n.voter,
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "PLAINTEXT",
		"listeners":                      listeners,
		"advertised.listeners":           advertised,
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",

		// One replica fits a single broker; few partitions make it start fast.
		"offsets.topic.num.partitions":                     "4",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.num.partitions":             "4",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.num.partitions":     "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",

		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "1000", // tests wait until dead members time out
		"auto.create.topics.enable":        "false",
		// A killed broker cannot register again before its session expires, and the default of 9 s
		// is most of a restart.
		"broker.session.timeout.ms":    "3000",
		"broker.heartbeat.interval.ms": "500",
		// The default buffer takes 128 MB, and tests do not compact topics.
		"log.cleaner.dedupe.buffer.size": "2097152",
	}
	return props
}
