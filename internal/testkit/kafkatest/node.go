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
	cluster    string // its ID
	port       int
	controller int    // the port of the controller that the node is too; 0 if it is none
	voter      string // where the node reaches the cluster's controller, which is node 1
	advertised string // where the controller says that others reach it; by default where it listens
	host       bool   // a container has the network of its machine
}

// clusterID is any 16 bytes in base64. Brokers of different tests never meet.
const clusterID = "4L6g3nShT-eMCtK--X86sw"

// newClusterID is another ID. It does not begin as an option of a command does.
func newClusterID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id[1:]) // never fails
	return base64.RawURLEncoding.EncodeToString(id)
}

const metaProperties = "meta.properties"

// name formats the storage of a broker that is no controller: there is nothing in it yet but names.
func (n node) name(data string) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf("version=1\nnode.id=%d\ncluster.id=%s\ndirectory.id=%s\n", n.id, n.cluster, newClusterID())
	return os.WriteFile(filepath.Join(data, metaProperties), []byte(text), 0o600)
}

// properties are the settings of a node that listens on bind and is reached at host.
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

		// One replica, also where there is one broker; few partitions, so a quick start.
		"offsets.topic.num.partitions":                     "4",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.num.partitions":             "4",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.num.partitions":     "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",

		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "1000", // a test waits for dead members
		"auto.create.topics.enable":        "false",
		// A killed broker cannot register anew before its session is over,
		// and the default of 9 s is the most of a restart.
		"broker.session.timeout.ms":    "3000",
		"broker.heartbeat.interval.ms": "500",
		// It would hold a buffer of 128 MB, and tests do not compact.
		"log.cleaner.dedupe.buffer.size": "2097152",
	}
	return props
}
