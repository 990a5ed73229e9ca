package reworded

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
)

// An answer of the brokers becomes advice, and wraps the error that it was.
func TestBrokers(t *testing.T) {
	for code, want := range map[kafka.Error]string{
		kafka.SASLAuthenticationFailed: "the brokers refuse the login: check the user and the password or token under kafka.sasl",
		kafka.TopicAuthorizationFailed: "the user may not see it: allow Describe and Read on the topic",
		kafka.KafkaStorageError:        `the brokers answer "Kafka Storage Error" (code 56)`,
	} {
		err := Brokers(code)
		if err.Error() != want || !errors.Is(err, code) {
			t.Errorf("%v\ngot  %v\nwant %s", code, err, want)
		}
	}
	for code := range advice {
		if strings.HasPrefix(Brokers(code).Error(), "the brokers answer") {
			t.Errorf("%v has no advice", code)
		}
	}
	if refused := new(net.OpError); !errors.As(Brokers(&net.OpError{Op: "dial", Err: errors.New("odd")}), &refused) {
		t.Error("another error is lost")
	}
}
