package fetch

import (
	"context"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AnyBroker lets a request go to whichever broker is known.
const AnyBroker int32 = anyBroker

// Requests sends requests in kmsg's form over the connections of kafka-go's Transport, in the versions that the broker
// and this package have in common. Its methods may be called concurrently.
type Requests struct{ exchanger exchanger }

// NewRequests returns one for the cluster of some brokers; clientID may be empty.
func NewRequests(transport kafka.RoundTripper, bootstrap net.Addr, clientID string) *Requests {
	if t, ok := transport.(*kafka.Transport); ok && clientID == "" {
		clientID = t.ClientID
	}
	return &Requests{exchanger{transport: transport, bootstrap: bootstrap, clientID: clientID}}
}

// Do sends a request to a broker and waits for the response, no longer than timeout. Error codes in the response are not
// looked at.
func (r *Requests) Do(ctx context.Context, timeout time.Duration, broker int32, request kmsg.Request) (kmsg.Response, error) {
	return r.exchanger.do(ctx, timeout, broker, request, 0, new([]byte))
}
