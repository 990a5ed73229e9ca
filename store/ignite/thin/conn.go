package thin

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// The operations that Weir uses, and the version of the protocol: the first one with feature bits.
const (
	opPutAll           = 1004
	opGetAll           = 1003
	opRemoveKeys       = 1018
	opSize             = 1020
	opGetOrCreateCache = 1054
	opConfiguration    = 1055
	opDestroyCache     = 1056
	opPartitions       = 1101
	opScan             = 2000
	opScanPage         = 2001
	opSQLFields        = 2004
	opCloseResource    = 0
	opTxStart          = 4000
	opTxEnd            = 4001
	opLogged           = 5003
	opNodes            = 5100

	versionMajor, versionMinor, versionPatch = 1, 7, 0
	handshake                                = 1
	clientCode                               = 2
)

// maxMessage bounds a message that a server sends.
const maxMessage = 256 << 20

// Error is an error that a server reports.
type Error struct {
	Status  int32
	Message string
}

func (e *Error) Error() string {
	const most = 300 // the rest is the state of the server's objects
	if len(e.Message) > most {
		return strings.ToValidUTF8(e.Message[:most], "") + " …"
	}
	return e.Message
}

// LostError is the error of a request whose connection was lost: whether the server has done it is unknown.
type LostError struct {
	Address string
	Err     error
}

func (e *LostError) Error() string { return fmt.Sprintf("%s: %v", e.Address, e.Err) }
func (e *LostError) Unwrap() error { return e.Err }

// Login says how to connect.
type Login struct {
	User, Password string      // no user means no authentication
	TLS            *tls.Config // nil for none
	Timeout        time.Duration
}

// conn is a connection to a node. Many goroutines may use it.
type conn struct {
	address string
	node    UUID
	net     net.Conn

	writing sync.Mutex
	// transactions has an entry for each transaction that is open: a node refuses a connection more than 100 of them, by default.
	transactions chan struct{}

	mu      sync.Mutex
	id      int64
	waiting map[int64]chan reply
	lost    error // why the connection cannot be used any more

	topologyChanged func()
}

// reply is what a server answers.
type reply struct {
	decoder
	err error
}

// maxTransactions is how many transactions of a connection are open at once: fewer than a node allows, which may not
// know yet that those have ended that were given up.
const maxTransactions = 64

// dial connects to a node.
func dial(ctx context.Context, address string, login *Login, topologyChanged func()) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, login.Timeout)
	defer cancel()
	dialContext := new(net.Dialer).DialContext
	if login.TLS != nil {
		dialContext = (&tls.Dialer{Config: login.TLS}).DialContext // which takes the server's name from the address, if none is given
	}
	c, err := dialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	made := &conn{address: address, net: c, waiting: map[int64]chan reply{}, topologyChanged: topologyChanged, transactions: make(chan struct{}, maxTransactions)}
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	if err := made.shakeHands(login); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	_ = c.SetDeadline(time.Time{})
	go made.receive()
	return made, nil
}

// shakeHands agrees on the version of the protocol, and learns the ID of the node.
func (c *conn) shakeHands(login *Login) error {
	e := encoder{make([]byte, 4)}
	e.byte(handshake)
	for _, n := range [...]int16{versionMajor, versionMinor, versionPatch} {
		e.short(n)
	}
	e.byte(clientCode)
	e.byteArray(nil) // no features
	if login.User != "" {
		e.string(login.User)
		e.string(login.Password)
	}
	if err := c.send(&e); err != nil {
		return err
	}
	message, err := readMessage(c.net)
	if err != nil {
		return err
	}
	d := decoder{bytes: message}
	if d.bool() {
		d.byteArray() // features of the server
		c.node = d.uuid()
		return d.err
	}
	major, minor, patch := d.short(), d.short(), d.short()
	text := d.string()
	if d.err != nil {
		return d.err
	}
	if major == 0 { // it is not about the version
		return fmt.Errorf("the node refuses the connection: %s", text)
	}
	return fmt.Errorf("the node refuses the connection: %s (it speaks version %d.%d.%d of the protocol, Weir %d.%d.%d)",
		text, major, minor, patch, versionMajor, versionMinor, versionPatch)
}

// send writes a message, whose first four bytes are left for its length.
func (c *conn) send(e *encoder) error {
	binary.LittleEndian.PutUint32(e.bytes, uint32(len(e.bytes)-4))
	_, err := c.net.Write(e.bytes)
	return err
}

var errTooLong = errors.New("the server sends a message that is too long")

// readMessage reads a message, without its length.
func readMessage(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxMessage {
		return nil, errTooLong
	}
	message := make([]byte, n)
	_, err := io.ReadFull(r, message)
	return message, err
}

// receive hands replies to who waits for them, until the connection is lost.
func (c *conn) receive() {
	in := bufio.NewReaderSize(c.net, 64<<10)
	for {
		message, err := readMessage(in)
		if err != nil {
			c.lose(err)
			return
		}
		id, r := parseReply(message, c.topologyChanged)
		c.mu.Lock()
		waiting := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		if waiting != nil {
			waiting <- r
		}
	}
}

// The flags of a reply.
const (
	failed  = 1
	changed = 2 // the topology has
)

// parseReply reads the header of a reply.
func parseReply(message []byte, topologyChanged func()) (id int64, r reply) {
	r.bytes = message
	id = r.long()
	flags := r.short()
	if flags&changed != 0 {
		r.long() // version of the topology
		r.int()
		topologyChanged()
	}
	if flags&failed != 0 {
		status := r.int()
		r.err = &Error{status, r.string()}
	}
	if r.decoder.err != nil {
		r.err = r.decoder.err
	}
	return id, r
}

var errClosed = errors.New("the connection was closed")

// lose ends the connection. What waits for a reply gets the error.
func (c *conn) lose(err error) {
	_ = c.net.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return
	}
	c.lost = &LostError{c.address, err}
	for id, waiting := range c.waiting {
		waiting <- reply{err: c.lost}
		delete(c.waiting, id)
	}
}

// usable reports whether the connection can be used.
func (c *conn) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost == nil
}

// request sends a request and waits for the reply. If none comes in time, the connection is given up: a server that hangs answers
// nobody.
func (c *conn) request(ctx context.Context, op int16, body func(e *encoder)) (decoder, error) {
	waiting := make(chan reply, 1)
	c.mu.Lock()
	if c.lost != nil {
		defer c.mu.Unlock()
		return decoder{}, c.lost
	}
	c.id++
	id := c.id
	c.waiting[id] = waiting
	c.mu.Unlock()

	e := encoder{make([]byte, 4, 256)}
	e.short(op)
	e.long(id)
	body(&e)
	c.writing.Lock()
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.net.SetWriteDeadline(deadline)
	}
	err := c.send(&e)
	c.writing.Unlock()
	if err != nil {
		c.lose(err)
	}
	select {
	case r := <-waiting:
		return r.decoder, r.err
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.lose(fmt.Errorf("no answer in time: %w", ctx.Err()))
		}
		return decoder{}, &LostError{c.address, ctx.Err()}
	}
}
