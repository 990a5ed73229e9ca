package brokers

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/segmentio/kafka-go"
)

// An error of the brokers becomes advice, and is wrapped.
func TestReword(t *testing.T) {
	for code, want := range map[kafka.Error]string{
		kafka.SASLAuthenticationFailed: "the brokers refuse the login: check the user and the password or token under kafka.sasl",
		kafka.TopicAuthorizationFailed: "the user may not see it: allow Describe and Read on the topic",
		kafka.IllegalSASLState:         "the brokers do not ask for a login at this address: use its address for SASL, or kafka.sasl.mechanism none",
		kafka.GroupAuthorizationFailed: "the user may not use it: allow Describe and Read on the consumer group",
		kafka.UnknownTopicOrPartition:  "there is no such topic or partition: check the name, or create the topic",
		kafka.KafkaStorageError:        `the brokers answer "Kafka Storage Error" (code 56)`,
	} {
		err := Reword(code)
		if err.Error() != want || !errors.Is(err, code) {
			t.Errorf("%v\ngot  %v\nwant %s", code, err, want)
		}
	}
	for code := range advice {
		if strings.HasPrefix(Reword(code).Error(), "the brokers answer") {
			t.Errorf("%v has no advice", code)
		}
	}
	if refused := new(net.OpError); !errors.As(Reword(&net.OpError{Op: "dial", Err: errors.New("odd")}), &refused) {
		t.Error("an error of another kind is not wrapped")
	}
}

// Only the part that a client library wrote is replaced.
func TestPlainly(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: syscall.ECONNREFUSED}
	const away = "nothing listens at 127.0.0.1:1: check the address, and that the server runs"
	mine := errors.New("mine")
	for _, test := range []struct {
		err  error
		want string
	}{
		{mine, "mine"},
		{fmt.Errorf("topic a: %w", fmt.Errorf("kafka.(*Client).Metadata: %w", refused)), "topic a: " + away},
		{fmt.Errorf("topic a: %w", kafka.TopicAuthorizationFailed), "topic a: the user may not see it: allow Describe and Read on the topic"},
		{fmt.Errorf("read a: %w", errors.Join(mine, refused)), "read a: mine\n" + away},
		{fmt.Errorf("topic a: %w", Reword(refused)), "topic a: " + away},
	} {
		got := Plainly(test.err)
		if got.Error() != test.want || !errors.Is(got, test.err) {
			t.Errorf("got %q, want %q, which wraps it", got, test.want)
		}
	}
	if err := Plainly(nil); err != nil {
		t.Errorf("Plainly(nil) = %v, want nil", err)
	}
}
