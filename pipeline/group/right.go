package group

import (
	"context"
	"fmt"
	"net"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/pipeline/fetch"
)

// MayJoin returns an error if the user may not join a group. It sends the heartbeat of a member that does not exist: any
// broker looks for the right of a member, Read, before it looks for the member, and the group stays as it is. Requests
// that only describe a group would not do, since they need no more than Describe.
func MayJoin(ctx context.Context, transport kafka.RoundTripper, bootstrap net.Addr, group string) error {
	request := kmsg.NewPtrHeartbeatRequest()
	request.Group, request.Generation = group, -1
	response, err := fetch.NewRequests(transport, bootstrap).Do(ctx, requestTimeout, fetch.AnyBroker, request)
	if err != nil {
		return fmt.Errorf("group %q: %w", group, err)
	}
	if code := kafka.Error(response.(*kmsg.HeartbeatResponse).ErrorCode); code == kafka.GroupAuthorizationFailed {
		return code
	}
	return nil
}
