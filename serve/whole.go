package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/weir-stream/weir/serve/reply"
)

// net/http writes through a buffer of 4 KiB. An answer that is longer leaves in
// pieces: each is a system call, and the first wakes a client that then waits for
// the rest. So the server's connections can hold back what is written until all
// of it is.

// mostHeld bounds what is held back, in bytes. Beside what a longer answer costs,
// its pieces cost little.
const mostHeld = 64 << 10

// heldPool keeps the memory of what was held back.
var heldPool = sync.Pool{New: func() any { return new([]byte) }}

// connection is a connection that can hold back what is written to it.
type connection struct {
	net.Conn

	mu   sync.Mutex // held while writing, so that no byte passes another
	held *[]byte    // nil where what is written goes out at once
}

// Write writes, or notes what release will write.
func (c *connection) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return c.Conn.Write(p)
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

// CloseWrite lets net/http close a connection of which it has not read all, such
// that the answer, including a refusal, arrives before the reset.
func (c *connection) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// hold begins to hold back.
func (c *connection) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = heldPool.Get().(*[]byte)
}

// release writes what was held back.
func (c *connection) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A client that went away is no failure of the server's, which finds out when it
	// reads the next request.
	_, _ = c.Conn.Write(*c.held)
	*c.held = (*c.held)[:0]
	heldPool.Put(c.held)
	c.held = nil
}

// holding is a listener whose connections can hold back.
type holding struct{ net.Listener }

// Accept waits for the next connection.
func (l holding) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: c}, nil
}

type connectionKey struct{}

// withConnection lets respondWhole find a request's connection, also below its
// encryption.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// respondWhole responds with JSON in one write, where the connection can hold it
// back and belongs to this request alone, which one of HTTP/2 does not.
func respondWhole(w http.ResponseWriter, r *http.Request, body []byte) {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if ok && r.ProtoMajor == 1 && len(body) <= mostHeld {
		c.hold()
		defer c.release()
		// What is left in net/http's buffer is to be held back too.
		defer func() { _ = http.NewResponseController(w).Flush() }()
	}
	reply.Respond(w, http.StatusOK, body)
}
