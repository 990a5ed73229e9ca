package reply

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
)

// net/http writes through a buffer of 4 KiB. A longer answer is sent in pieces: each is a system call, and the first
// one wakes a client that then waits for the rest. So the server's connections can hold back writes until the answer is
// complete.

// maxHeld bounds the bytes held back. For a longer answer the cost of pieces is small in comparison.
const maxHeld = 64 << 10

// heldPool reuses the memory of held-back writes.
var heldPool = sync.Pool{New: func() any { return new([]byte) }}

// connection is a connection that can hold back writes.
type connection struct {
	net.Conn
	leave func() // frees its place

	mu   sync.Mutex // held while writing, so that no byte passes another
	held *[]byte    // nil if writes go out at once
}

// Write writes, or buffers for release.
func (c *connection) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return c.Conn.Write(p)
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

// Close closes the connection, so that another one is accepted.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// CloseWrite lets net/http close a connection without reading all of it, so that the answer, such as a refusal, arrives
// before the reset.
func (c *connection) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// hold makes the connection hold back writes.
func (c *connection) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = heldPool.Get().(*[]byte)
}

// release sends the held-back writes.
func (c *connection) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A client that went away is not a failure of the server, which notices when it reads the next
	// request.
	_, _ = c.Conn.Write(*c.held)
	*c.held = (*c.held)[:0]
	heldPool.Put(c.held)
	c.held = nil
}

// Listener is a listener whose connections can hold back writes. It accepts a limited number of them; more wait until one is closed.
type Listener struct {
	net.Listener
	places chan struct{} // one for each open connection
	closed chan struct{}
	close  func()
}

// NewListener returns a listener that has up to a number of connections open.
func NewListener(l net.Listener, connections int) *Listener {
	closed := make(chan struct{})
	return &Listener{l, make(chan struct{}, connections), closed, sync.OnceFunc(func() { close(closed) })}
}

// Accept waits for a place, and for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &connection{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close ends Accept.
func (l *Listener) Close() error {
	l.close()
	return l.Listener.Close()
}

type connectionKey struct{}

// WithConnection lets Whole find the connection of a request, also under encryption. It is the
// ConnContext of a server on a Listener.
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// Whole responds with JSON in one write, if the connection can hold back writes and serves only this request, which
// excludes HTTP/2.
func Whole(w http.ResponseWriter, r *http.Request, body []byte) {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if ok && r.ProtoMajor == 1 && len(body) <= maxHeld {
		c.hold()
		defer c.release()
		// The rest of net/http's buffer must also be held back.
		defer func() { _ = http.NewResponseController(w).Flush() }()
	}
	Respond(w, http.StatusOK, body)
}
