package fetch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// writableWithin bounds the request.
	writableWithin = 10 * time.Second
	// mayWrite is the bit of Write among the operations that a user may do.
	mayWrite = 1 << 4
	// unknownOperations is what a broker says that does not know them.
	unknownOperations = -1 << 31
)

// Unwritable returns those of the topics that the client's user may not write to, as far as the brokers say.
func Unwritable(ctx context.Context, client *kafka.Client, names []string) (refused []string, err error) {
	request := kmsg.NewPtrMetadataRequest()
	request.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, topic)
	}
	transport := client.Transport
	if transport == nil {
		transport = kafka.DefaultTransport // as the client does
	}
	response, err := NewRequests(transport, client.Addr).Do(ctx, writableWithin, AnyBroker, request)
	if err != nil {
		return nil, fmt.Errorf("ask which topics may be written to: %w", err)
	}
	for _, topic := range response.(*kmsg.MetadataResponse).Topics {
		denied := topic.ErrorCode == 0 && topic.AuthorizedOperations != unknownOperations && topic.AuthorizedOperations&mayWrite == 0
		if topic.Topic != nil && (denied || topic.ErrorCode == kerr.TopicAuthorizationFailed.Code) {
			refused = append(refused, *topic.Topic)
		}
	}
	slices.Sort(refused)
	return refused, nil
}
