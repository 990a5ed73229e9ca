package fetch

import (
	"context"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AnyBroker stands for the ID of a broker in a request that any of them may answer.
const AnyBroker int32 = -1

// Requests sends requests in kmsg's form over the connections of kafka-go's Transport, in the
// versions that both the broker and this package support. Its methods may be called concurrently.
type Requests struct{ exchanger exchanger }

// NewRequests returns one for the cluster of some brokers.
func NewRequests(transport kafka.RoundTripper, bootstrap net.Addr) *Requests {
	return &Requests{exchanger{transport: transport, bootstrap: bootstrap, clientID: clientIDOf(transport)}}
}

// clientIDOf returns the client ID that a transport sends to brokers; empty if it sends none.
func clientIDOf(transport kafka.RoundTripper) string {
	if t, ok := transport.(*kafka.Transport); ok {
		return t.ClientID
	}
	return ""
}

// Do sends a request to a broker and waits for the response, at most for timeout. It does not check
// error codes in the response.
func (r *Requests) Do(ctx context.Context, timeout time.Duration, broker int32, request kmsg.Request) (kmsg.Response, error) {
	return r.exchanger.do(ctx, timeout, broker, request, 0, new([]byte))
}
