package topics

import (
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A user who may read a topic, but not its settings, learns which right is missing.
func TestSettingsThatTheUserMayNotRead(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	broker.ControlKey(int16(kmsg.DescribeConfigs), func(request kmsg.Request) (kmsg.Response, error, bool) {
		refused := request.ResponseKind().(*kmsg.DescribeConfigsResponse)
		topic := kmsg.NewDescribeConfigsResponseResource()
		topic.ResourceType, topic.ResourceName, topic.ErrorCode = kmsg.ConfigResourceTypeTopic, "events", kerr.TopicAuthorizationFailed.Code
		refused.Resources = append(refused.Resources, topic)
		return refused, nil, true
	})
	client := &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...)}
	_, err = Settings(t.Context(), client, []string{"events"})
	if want := "read the settings of topic events: the user may not: allow DescribeConfigs on it"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
