package fetch

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"weak"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// offers knows which versions of each API the broker of a connection offers. It asks once for each
// connection: an upgrade of a broker ends its connections.
type offers struct {
	mu     sync.Mutex
	byConn map[weak.Pointer[protocol.Conn]]map[int16]versionRange
}

// of returns what the broker offers, by the key of the API.
func (o *offers) of(rw io.ReadWriter, clientID string) (map[int16]versionRange, error) {
	conn, _ := rw.(*protocol.Conn)
	if conn == nil {
		return askOffers(rw, clientID)
	}
	key := weak.Make(conn)
	o.mu.Lock()
	known := o.byConn[key]
	o.mu.Unlock()
	if known != nil {
		return known, nil
	}
	offered, err := askOffers(rw, clientID)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byConn == nil {
		o.byConn = make(map[weak.Pointer[protocol.Conn]]map[int16]versionRange)
	}
	o.byConn[key] = offered
	runtime.AddCleanup(conn, o.forget, key)
	return offered, nil
}

// forget drops what is known about a connection that was closed.
func (o *offers) forget(key weak.Pointer[protocol.Conn]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byConn, key)
}

// askOffers asks in the first version, which every broker answers.
func askOffers(rw io.ReadWriter, clientID string) (map[int16]versionRange, error) {
	request := kmsg.NewPtrApiVersionsRequest()
	body, err := roundTrip(rw, clientID, request, nil)
	if err != nil {
		return nil, err
	}
	response := request.ResponseKind().(*kmsg.ApiVersionsResponse)
	if err := response.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("fetch: reading the %s response: %w", kmsg.NameForKey(request.Key()), err)
	}
	if err := kerror(response.ErrorCode); err != nil {
		return nil, fmt.Errorf("fetch: the versions that the broker offers: %w", err)
	}
	offered := make(map[int16]versionRange, len(response.ApiKeys))
	for _, k := range response.ApiKeys {
		offered[k.ApiKey] = versionRange{k.MinVersion, k.MaxVersion}
	}
	return offered, nil
}
