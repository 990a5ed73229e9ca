package fetch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// versionRange is a range of versions of an API, inclusive.
type versionRange struct{ min, max int16 }

// versions are the supported versions of each API: from the least needed to the latest used.
var versions = map[kmsg.Key]versionRange{
	kmsg.Fetch:                {4, 13}, // record batch v2, aborted transactions; topics are named by ID from v13 on
	kmsg.ListOffsets:          {1, 6},  // one offset for a timestamp; from v4 on with leader epochs
	kmsg.Metadata:             {4, 12}, // asking creates no topic; from v10 on with topic IDs
	kmsg.OffsetForLeaderEpoch: {2, 4},  // with the epoch that the caller takes for the leader's
	kmsg.FindCoordinator:      {1, 3},  // of one group
	kmsg.JoinGroup:            {2, 9},  // from v5 on with instance IDs
	kmsg.SyncGroup:            {1, 5},
	kmsg.Heartbeat:            {1, 4},
	kmsg.LeaveGroup:           {1, 5},
	kmsg.OffsetCommit:         {2, 8}, // topics are named by name
}

// unsupportedError says that a broker does not offer an API in a supported version.
type unsupportedError struct {
	api            string
	known, offered versionRange // offered is -1 to -1 where the API is not offered at all
}

func (e *unsupportedError) Error() string {
	switch {
	case e.offered.max < 0:
		return fmt.Sprintf("fetch: the broker does not offer %s, of which at least v%d is needed", e.api, e.known.min)
	case e.offered.max < e.known.min:
		return fmt.Sprintf("fetch: the broker offers %s v%d, at least v%d is needed", e.api, e.offered.max, e.known.min)
	default:
		return fmt.Sprintf("fetch: the broker offers %s v%d to v%d, v%d to v%d are known", e.api, e.offered.min, e.offered.max,
			e.known.min, e.known.max)
	}
}

// exchange is a request that kafka-go's Transport sends without knowing its format: the Transport finds the connection,
// with its TLS and SASL, and hands it over for one request and one response. It gives a connection to one request at a
// time, so a long poll blocks no other request: they use other connections. kafka-go negotiates only the versions that
// it knows; this package negotiates newer ones, once for each connection.
type exchange struct {
	ctx      context.Context
	clientID string
	broker   int32 // node id, or AnyBroker
	offers   *offers
	request  kmsg.Request
	limit    int16   // the greatest version allowed for the request; 0 for any
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
	if e.broker == AnyBroker {
		return protocol.Broker{ID: AnyBroker}, nil
	}
	b, ok := c.Brokers[e.broker]
	if !ok {
		return b, fmt.Errorf("fetch: broker %d is not in the cluster's metadata", e.broker)
	}
	return b, nil
}

// Required implements protocol.RawExchanger.
func (e *exchange) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange implements protocol.RawExchanger. An error makes the Transport close the connection.
func (e *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	// When the context ends, the wait on the socket must end, too, not just the wait on the Transport. The past
	// deadline must not be set after this function returns, because the connection may then serve another request.
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
	offered, err := e.offers.of(rw, e.clientID)
	if err != nil {
		return nil, err
	}
	version, err := choose(offered, e.request.Key(), e.limit)
	if err != nil {
		return nil, err
	}
	e.request.SetVersion(version)
	*e.body, err = roundTrip(rw, e.clientID, e.request, (*e.body)[:0])
	return reply{e.ApiKey()}, err
}

// choose returns the greatest version of an API, not above limit unless that is 0, that both the broker and this
// package support.
func choose(offered map[int16]versionRange, key, limit int16) (int16, error) {
	known, broker := versions[kmsg.Key(key)], versionRange{-1, -1}
	if r, ok := offered[key]; ok {
		broker = r
	}
	v := min(known.max, broker.max)
	if limit > 0 {
		v = min(v, limit)
	}
	if v < known.min || v < broker.min {
		return 0, &unsupportedError{kmsg.NameForKey(key), known, broker}
	}
	return v, nil
}

// roundTrip sends a request in its version, and puts the body of the response into body.
func roundTrip(rw io.ReadWriter, clientID string, request kmsg.Request, body []byte) ([]byte, error) {
	const correlation = 1 // there is only one request on the connection
	_, err := rw.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, request, correlation))
	if err != nil {
		return body, err
	}
	var header [8]byte
	if _, err := io.ReadFull(rw, header[:]); err != nil {
		return body, err
	}
	size := int(int32(binary.BigEndian.Uint32(header[:]))) - 4
	if id := binary.BigEndian.Uint32(header[4:]); size < 0 || id != correlation {
		return body, fmt.Errorf("fetch: a response of %d bytes with correlation id %d, expected %d", size, id, correlation)
	}
	return readGrowing(rw, body, size)
}

// readGrowing reads size bytes into buf, which grows as they arrive: a wrong size alone allocates nothing.
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
	offers    offers
}

// do sends request to a broker and waits for the response, which points into body. It waits no longer than timeout. The
// request's version is not greater than limit, unless that is 0. After an error the connection may still be using
// request and body, so neither can be used again.
func (x *exchanger) do(ctx context.Context, timeout time.Duration, broker int32, request kmsg.Request, limit int16, body *[]byte,
) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e := &exchange{ctx: ctx, clientID: x.clientID, broker: broker, offers: &x.offers, request: request, limit: limit, body: body}
	if _, err := x.transport.RoundTrip(ctx, x.bootstrap, e); err != nil {
		return nil, err
	}
	response := request.ResponseKind()
	response.SetVersion(request.GetVersion())
	content, err := *body, error(nil)
	if request.IsFlexible() {
		content, err = skipTags(content)
	}
	if err == nil {
		err = response.ReadFrom(content)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch: reading the %s response: %w", kmsg.NameForKey(request.Key()), err)
	}
	return response, nil
}

var errTags = errors.New("the tags of the header do not end")

// skipTags skips the tagged fields with which the header of a flexible response ends.
func skipTags(body []byte) ([]byte, error) {
	tags, n := binary.Uvarint(body)
	for body = body[max(n, 0):]; n > 0 && tags > 0; tags-- {
		if _, n = binary.Uvarint(body); n <= 0 {
			break
		}
		var size uint64
		body = body[n:]
		if size, n = binary.Uvarint(body); n <= 0 || size > uint64(len(body)-n) {
			return nil, errTags
		}
		body = body[n+int(size):]
	}
	if n <= 0 {
		return nil, errTags
	}
	return body, nil
}
