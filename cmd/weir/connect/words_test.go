package connect

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/weir-stream/weir/config"
)

// Brokers that cannot be asked are reported with what to do, without the client's own words.
func TestFindTopicsInWords(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "weir", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	for _, c := range []struct {
		brokers []string
		sasl    config.SASL
		want    string
	}{
		{[]string{"127.0.0.1:1"}, config.SASL{}, "nothing listens at 127.0.0.1:1: check the address, and that the server runs"},
		{broker.ListenAddrs(), config.SASL{}, "the server closes the connection at once: check whether it wants TLS, or a login"},
		{broker.ListenAddrs(), config.SASL{Mechanism: "plain", PasswordFile: "/none"}, "kafka.sasl.password_file cannot be read: open /none: no such file or directory"},
	} {
		cfg := config.Default()
		cfg.Kafka.Brokers, cfg.Kafka.SASL = c.brokers, c.sasl
		client, err := KafkaClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := FindTopics(t.Context(), client, []string{"events"}); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// What brokers answer says what to do, and stays what it was for those who look into it.
func TestAnswersInWords(t *testing.T) {
	for code, want := range map[kafka.Error]string{
		kafka.SASLAuthenticationFailed: "the brokers refuse the login: check the user and the password or token under kafka.sasl",
		kafka.TopicAuthorizationFailed: "the user may not see it: allow Describe and Read on the topic",
		kafka.KafkaStorageError:        `the brokers answer "Kafka Storage Error" (code 56)`,
	} {
		err := inWords(code)
		if err.Error() != want || !errors.Is(err, code) {
			t.Errorf("%v\ngot  %v\nwant %s", code, err, want)
		}
	}
	for code := range advice {
		if strings.HasPrefix(inWords(code).Error(), "the brokers answer") {
			t.Errorf("%v has no advice", code)
		}
	}
	if refused := new(net.OpError); !errors.As(inWords(&net.OpError{Op: "dial", Err: errors.New("odd")}), &refused) {
		t.Error("another error is lost")
	}
}
