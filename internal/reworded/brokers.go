package reworded

import (
	"errors"
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go"
)

// advice is what to do about answers of the brokers.
var advice = map[kafka.Error]string{
	kafka.SASLAuthenticationFailed:   "the brokers refuse the login: check the user and the password or token under kafka.sasl",
	kafka.UnsupportedSASLMechanism:   "the brokers do not offer this kafka.sasl.mechanism: choose one that they do",
	kafka.TopicAuthorizationFailed:   "the user may not see it: allow Describe and Read on the topic",
	kafka.ClusterAuthorizationFailed: "the user may not do this: allow Create on the cluster, or create the topics yourself",
	kafka.InvalidTopic:               "brokers allow no such name: use letters, digits, dots, - and _",
	kafka.InvalidReplicationFactor:   "there are fewer brokers than kafka.topic_replication",
	kafka.InvalidPartitionNumber:     "brokers do not allow this number of partitions: set kafka.topic_partitions",
	kafka.PolicyViolation:            "the brokers' policy forbids such a topic: create it yourself",
	kafka.LeaderNotAvailable:         "it has no leader yet: try again in a moment",
	kafka.RequestTimedOut:            "the brokers took too long: try again in a moment",
	kafka.NotController:              "the brokers are choosing a controller: try again in a moment",
}

// Brokers says why brokers do not do what they are asked, with what to do. The result wraps err.
func Brokers(err error) error {
	if code, ok := errors.AsType[kafka.Error](err); ok {
		if text, ok := advice[code]; ok {
			return Error(err, text)
		}
		return Error(err, fmt.Sprintf("the brokers answer %q (code %d)", code.Title(), int(code)))
	}
	if strings.HasPrefix(err.Error(), "kafka.(*Client).") { // the name of the client's method
		err = errors.Unwrap(err)
	}
	return Connection(err)
}
