// Package brokers says what is wrong in plain words where brokers refuse a request.
package brokers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/reworded"
)

// advice maps answers of the brokers to what to do about them.
var advice = map[kafka.Error]string{
	kafka.SASLAuthenticationFailed:   "the brokers refuse the login: check the user and the password or token under kafka.sasl",
	kafka.IllegalSASLState:           "the brokers do not ask for a login at this address: use its address for SASL, or kafka.sasl.mechanism none",
	kafka.UnsupportedSASLMechanism:   "the brokers do not offer this kafka.sasl.mechanism: choose one that they do",
	kafka.UnknownTopicOrPartition:    "there is no such topic or partition: check the name, or create the topic",
	kafka.TopicAuthorizationFailed:   "the user may not see it: allow Describe and Read on the topic",
	kafka.GroupAuthorizationFailed:   "the user may not use it: allow Describe and Read on the consumer group",
	kafka.ClusterAuthorizationFailed: "the user may not do this: allow Create on the cluster, or create the topics yourself",
	kafka.InvalidTopic:               "brokers allow no such name: use letters, digits, dots, - and _",
	kafka.InvalidReplicationFactor:   "there are fewer brokers than kafka.topic_replication",
	kafka.InvalidPartitionNumber:     "brokers do not allow this number of partitions: set kafka.topic_partitions",
	kafka.PolicyViolation:            "the brokers' policy forbids such a topic: create it yourself",
	kafka.LeaderNotAvailable:         "it has no leader yet: try again in a moment",
	kafka.RequestTimedOut:            "the brokers took too long: try again in a moment",
	kafka.NotController:              "the brokers are choosing a controller: try again in a moment",
}

// clientMethod begins the errors of the Kafka client.
const clientMethod = "kafka.(*Client)."

// Plainly is reworded.Plainly, also for what brokers answer. The result wraps err.
func Plainly(err error) error {
	for part := err; part != nil; part = errors.Unwrap(part) {
		if strings.HasPrefix(part.Error(), clientMethod) {
			return reworded.Part(err, part, Reword(part))
		}
	}
	if answer, ok := errors.AsType[kafka.Error](err); ok {
		return reworded.Part(err, answer, Reword(answer))
	}
	return reworded.Plainly(err)
}

// Reword returns an error that says why brokers refused a request, and what to do. The result wraps err.
func Reword(err error) error {
	if code, ok := errors.AsType[kafka.Error](err); ok {
		if text, ok := advice[code]; ok {
			return reworded.As(err, text)
		}
		return reworded.As(err, fmt.Sprintf("the brokers answer %q (code %d)", code.Title(), int(code)))
	}
	if strings.HasPrefix(err.Error(), clientMethod) {
		err = errors.Unwrap(err)
	}
	return reworded.Connection(err)
}
