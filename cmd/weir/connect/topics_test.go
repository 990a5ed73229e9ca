package connect

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/operate/topics"
)

// Dead letters must not be among events: each would be read, and become a dead letter again, without end.
func TestDeadLettersAreNoEvents(t *testing.T) {
	r := defined.Registry(t, `
streams:
  payment: {topic: payments, timestamp: at, fields: {user: string}}
  rejected: {topics: [more, weir.dead-letters], timestamp: at, fields: {user: string}}
`)
	want := `kafka.dead_letter_topic is weir.dead-letters, which stream "rejected" reads: name another one`
	if _, err := TopicNames(r, "weir.dead-letters"); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if names, err := TopicNames(r, "dead"); err != nil || !slices.Equal(names, []string{"more", "payments", "weir.dead-letters", "dead"}) {
		t.Errorf("got %v, %v", names, err)
	}
}

// A missing topic of a table is created compacted, unless events are in it too; without create, nothing fails for lack of one.
func TestEnsureTopicsOfTables(t *testing.T) {
	r := defined.Registry(t, `
streams: {payment: {topic: payments, timestamp: at, fields: {user: string}}}
tables:
  last: {topic: payments, key: user, fields: {at: int}}
  merchant: {topic: merchants, key: id, fields: {risk: string}}
lists: {blocked: {topic: weir.lists}}
`)
	client := &kafka.Client{Addr: kafka.TCP(kafkatest.Embedded(t, nil).ListenAddrs()...)}
	want := "no topic payments, dead: create it, or set kafka.create_topics; with ACLs, allow Describe on it"
	if err := EnsureTopics(t.Context(), client, TopicSettings{DeadLetters: "dead"}, r); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for range 2 {
		if err := EnsureTopics(t.Context(), client, TopicSettings{Create: true, DeadLetters: "dead", Partitions: 2, Replication: 1}, r); err != nil {
			t.Fatal(err)
		}
	}
	found, err := topics.Settings(t.Context(), client, []string{"dead", "merchants", "payments", "weir.lists"})
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]string{}
	for name, settings := range found {
		policies[name] = settings["cleanup.policy"]
	}
	if diff := cmp.Diff(map[string]string{"dead": "delete", "merchants": "compact", "payments": "delete", "weir.lists": "compact"}, policies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A user who may not create topics learns that, and not that it may not see them.
func TestEnsureTopicsReportsWhatTheUserMayNot(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	broker.ControlKey(int16(kmsg.CreateTopics), func(request kmsg.Request) (kmsg.Response, error, bool) {
		refused := request.ResponseKind().(*kmsg.CreateTopicsResponse)
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic, topic.ErrorCode = "dead", kerr.TopicAuthorizationFailed.Code
		refused.Topics = append(refused.Topics, topic)
		return refused, nil, true
	})
	cfg := config.Default()
	cfg.Kafka.Brokers = broker.ListenAddrs()
	client, err := KafkaClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = EnsureTopics(t.Context(), client, TopicSettings{Create: true, DeadLetters: "dead"}, &features.Registry{})
	if want := "create topic dead: the user may not: allow Create on the topic or the cluster, or create it yourself"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Brokers that cannot be asked are reported with what to do, without the client's own words.
func TestFindTopicsReportsUnavailableBrokers(t *testing.T) {
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
		{broker.ListenAddrs(), config.SASL{}, "the server closes the connection at once: check whether it wants TLS or none, a client certificate, and a login"},
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
