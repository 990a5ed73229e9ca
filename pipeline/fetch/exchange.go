package fetch

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const anyBroker = -1

// versions bounds what is spoken of each API: from what is needed to the last version before the flexible encoding,
// with its other headers.
var versions = map[kmsg.Key]struct{ min, max int16 }{
	kmsg.Fetch:       {4, 11}, // record batch v2, aborted transactions
	kmsg.ListOffsets: {1, 5},  // one offset for a timestamp
	kmsg.Metadata:    {4, 8},  // no topic is made by asking for it
}

// exchange is a request that kafka-go's Transport carries without knowing its format: the Transport finds the
// connection, with its TLS, SASL and versions, and hands it over for one request and one response. It gives a
// connection to one request at a time, so a long poll holds nobody up; others open or reuse another connection.
type exchange struct {
	ctx      context.Context
	clientID string
	broker   int32 // node id, or anyBroker
	request  kmsg.Request
	body     *[]byte // where to put the response
}

var (
	_ protocol.BrokerMessage = (*exchange)(nil)
	_ protocol.RawExchanger  = (*exchange)(nil)
)

// reply marks the end of an exchange, whose body has the response.
type reply struct{ key protocol.ApiKey }

func (r reply) ApiKey() protocol.ApiKey { return r.key }

// ApiKey implements protocol.Message.
func (e *exchange) ApiKey() protocol.ApiKey { return protocol.ApiKey(e.request.Key()) }

// Broker implements protocol.BrokerMessage.
func (e *exchange) Broker(c protocol.Cluster) (protocol.Broker, error) {
	if e.broker == anyBroker {
		return protocol.Broker{ID: anyBroker}, nil
	}
	b, ok := c.Brokers[e.broker]
	if !ok {
		return b, fmt.Errorf("fetch: broker %d is not in the cluster's metadata", e.broker)
	}
	return b, nil
}

// Required implements protocol.RawExchanger. It is told the versions that kafka-go and the broker have in common,
// right before RawExchange.
func (e *exchange) Required(common map[protocol.ApiKey]int16) bool {
	e.request.SetVersion(min(common[e.ApiKey()], versions[kmsg.Key(e.request.Key())].max))
	return true
}

// RawExchange implements protocol.RawExchanger. An error makes the Transport close the connection.
func (e *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	key := kmsg.Key(e.request.Key())
	if v, least := e.request.GetVersion(), versions[key].min; v < least {
		return nil, fmt.Errorf("fetch: the broker offers %s v%d, at least v%d is needed", key.Name(), v, least)
	}
	// A context that ends must end the wait on the socket too, not just the wait on the Transport. The past deadline
	// must not be set after this function has returned, when the connection may serve another request.
	if conn, ok := rw.(net.Conn); ok {
		expired := make(chan struct{})
		stop := context.AfterFunc(e.ctx, func() {
			defer close(expired)
			conn.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed connection has ended the wait already
		})
		defer func() {
			if !stop() {
				<-expired
			}
		}()
	}
	const correlation = 1 // there is only one request on the connection
	_, err := rw.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(e.clientID)).AppendRequest(nil, e.request, correlation))
	if err != nil {
		return nil, err
	}
	var header [8]byte
	if _, err := io.ReadFull(rw, header[:]); err != nil {
		return nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(header[:]))) - 4
	if id := binary.BigEndian.Uint32(header[4:]); size < 0 || id != correlation {
		return nil, fmt.Errorf("fetch: a response of %d bytes with correlation id %d, expected %d", size, id, correlation)
	}
	*e.body, err = readGrowing(rw, (*e.body)[:0], size)
	return reply{e.ApiKey()}, err
}

// readGrowing reads size bytes into buf, which grows as they come: a size alone allocates nothing.
func readGrowing(r io.Reader, buf []byte, size int) ([]byte, error) {
	const step = 1 << 20
	for len(buf) < size {
		have := len(buf)
		buf = slices.Grow(buf, min(size-have, max(have, step)))
		buf = buf[:min(size, cap(buf))]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// exchanger sends requests to brokers.
type exchanger struct {
	transport kafka.RoundTripper
	bootstrap net.Addr
	clientID  string
}

// do sends request to a broker and waits for the response, which points into body. It waits no longer than timeout.
// After an error the connection may still be using request and body, so neither can be used again.
func (x *exchanger) do(ctx context.Context, timeout time.Duration, broker int32, request kmsg.Request, body *[]byte,
) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e := &exchange{ctx: ctx, clientID: x.clientID, broker: broker, request: request, body: body}
	if _, err := x.transport.RoundTrip(ctx, x.bootstrap, e); err != nil {
		return nil, err
	}
	response := request.ResponseKind()
	response.SetVersion(request.GetVersion())
	if err := response.ReadFrom(*body); err != nil {
		return nil, fmt.Errorf("fetch: reading the %s response: %w", kmsg.NameForKey(request.Key()), err)
	}
	return response, nil
}
