// Package thin is a client of Apache Ignite's thin-client protocol, version 1.7.0 (Apache Ignite's documentation, "Binary Client
// Protocol"), with what a store needs of it: values by key, transactions, SQL and scans. Keys are UUIDs and values arrays of bytes.
//
// A Client keeps a connection to each node that it is told of. Requests about a key go to the node that has it, which saves a hop;
// any other node can answer them, too. If the nodes are in different clusters, none is asked.
package thin

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how to reach a cluster.
type Config struct {
	Addresses []string // host:port of nodes
	Login     Login
	Request   time.Duration // how long a request takes at most
}

// Client is a client of a cluster. It is safe for concurrent use.
type Client struct {
	config Config
	nodes  []*node
	// changes counts changes of the topology, and connections: caches then ask again where their partitions are.
	changes    atomic.Int64
	membership membership
	closed     chan struct{}
}

// Changes counts the changes of the topology that nodes have told of, and the connections that were opened.
func (c *Client) Changes() int64 { return c.changes.Load() }

// node is a node's address, with the connection to it.
type node struct {
	address string
	dialing sync.Mutex // held while it is connected to

	mu      sync.Mutex // guards what follows
	conn    *conn      // nil if there was none yet
	failed  error      // why it could not be reached
	retryAt time.Time
}

// usable returns the connection to the node, nil if there is none.
func (n *node) usable() *conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn != nil && n.conn.usable() {
		return n.conn
	}
	return nil
}

// lately returns why the node could not be reached a short time ago.
func (n *node) lately() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().Before(n.retryAt) {
		return n.failed
	}
	return nil
}

// retryAfter is how long after a failure a node is tried again.
const retryAfter = time.Second

// New returns a client. It connects when it is used.
func New(c Config) *Client {
	client := &Client{config: c, closed: make(chan struct{})}
	for _, address := range c.Addresses {
		client.nodes = append(client.nodes, &node{address: address})
	}
	return client
}

// Close closes the connections. It is called once.
func (c *Client) Close() error {
	close(c.closed)
	for _, n := range c.nodes {
		n.mu.Lock()
		if n.conn != nil {
			n.conn.lose(errClosed)
		}
		n.mu.Unlock()
	}
	return nil
}

// connect returns the connection to a node, which it makes if necessary.
func (c *Client) connect(ctx context.Context, n *node) (*conn, error) {
	n.dialing.Lock()
	defer n.dialing.Unlock()
	if known := n.usable(); known != nil {
		return known, nil
	}
	if err := n.lately(); err != nil {
		return nil, err
	}
	made, err := dial(ctx, n.address, &c.config.Login, c.changed)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed = err; err != nil {
		n.retryAt = time.Now().Add(retryAfter)
		return nil, err
	}
	n.conn = made
	c.changed()
	return made, nil
}

// to returns a connection to a node, or to any other one if that is unknown or cannot be reached. It connects, to all, only if there
// is none. It fails if the nodes are in different clusters.
func (c *Client) to(ctx context.Context, id UUID) (*conn, error) {
	found := c.connected(id)
	if found == nil {
		c.Try(ctx)
		if found = c.connected(id); found == nil {
			return nil, cmp.Or(c.unreachable(), errNone)
		}
	}
	return found, c.whole(ctx)
}

var errNone = errors.New("all connections were lost")

// connected returns the connection to a node, or to any other one, nil if there is none.
func (c *Client) connected(id UUID) (other *conn) {
	for _, n := range c.nodes {
		if found := n.usable(); found != nil {
			if other = found; found.node == id {
				break
			}
		}
	}
	return other
}

// Node is a node that a client is told of.
type Node struct {
	Address string
	Err     error // why it could not be reached the last time; nil if it could
}

// Nodes returns what is known of the nodes. It makes no request.
func (c *Client) Nodes() (list []Node) {
	for _, n := range c.nodes {
		n.mu.Lock()
		list = append(list, Node{n.address, n.failed})
		n.mu.Unlock()
	}
	return list
}

// Try connects to the nodes to which there is no connection; Nodes has the errors. Requests do not wait for that.
func (c *Client) Try(ctx context.Context) {
	var connecting sync.WaitGroup
	for _, n := range c.nodes {
		connecting.Go(func() { _, _ = c.connect(ctx, n) })
	}
	connecting.Wait()
}

// Down returns why no node can be used; nil if one can, as far as is known. It makes no request.
func (c *Client) Down() error { return cmp.Or(c.splitError(), c.unreachable()) }

// unreachable returns why no node can be reached; nil if one can, as far as is known.
func (c *Client) unreachable() error {
	var errs []error
	for _, n := range c.nodes {
		n.mu.Lock()
		failed := n.failed
		n.mu.Unlock()
		if failed == nil {
			return nil
		}
		errs = append(errs, failed)
	}
	return errors.Join(errs...)
}

// request sends a request to a node, or any other one. If the connection is lost, it is repeated once on another one: the caller
// knows that this does no harm.
func (c *Client) request(ctx context.Context, id UUID, op int16, body func(*encoder)) (decoder, error) {
	d, _, err := c.begin(ctx, id, op, body)
	return d, err
}

// begin is request, and returns the connection with the answer: only there is known what the request has begun.
func (c *Client) begin(ctx context.Context, id UUID, op int16, body func(*encoder)) (decoder, *conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Request)
	defer cancel()
	for attempt := 0; ; attempt++ {
		to, err := c.to(ctx, id)
		if err != nil {
			return decoder{}, nil, err
		}
		d, err := to.request(ctx, op, body)
		if lost, ok := errors.AsType[*LostError](err); ok && attempt == 0 && ctx.Err() == nil && lost != nil {
			continue
		}
		// A reply that tells of another topology may come from a node without which others have gone on.
		return d, to, cmp.Or(c.whole(ctx), err)
	}
}

// goOn sends a request about what begin has begun, to the same connection, and does not repeat it if that is lost.
func (c *Client) goOn(ctx context.Context, with *conn, op int16, body func(*encoder)) (decoder, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Request)
	defer cancel()
	d, err := with.request(ctx, op, body)
	return d, cmp.Or(c.whole(ctx), err)
}

// Clock returns the time of a node, in ms since 1970, and how long ago it can have been that at most.
func (c *Client) Clock(ctx context.Context) (ms int64, within time.Duration, err error) {
	began := time.Now()
	d, err := c.query(ctx, "SELECT CURRENT_TIMESTAMP")
	if err != nil {
		return 0, 0, err
	}
	ms = d.timestamp()
	return ms, time.Since(began), d.err
}

// Copies returns how many copies of partitions, of all caches, are in a state of Ignite's: MOVING are not complete yet, since the
// cluster is moving them to nodes that have joined, or in place of others that have left; of LOST ones none is complete any more.
func (c *Client) Copies(ctx context.Context, state string) (copies int64, err error) {
	d, err := c.query(ctx, "SELECT COUNT(*) FROM SYS.PARTITION_STATES WHERE STATE = '"+state+"'")
	if err != nil {
		return 0, err
	}
	if d.typed(typeLong) {
		copies = d.long()
	}
	return copies, d.err
}

// query makes a query in SQL that has one row, and returns what comes after the row's number of values.
func (c *Client) query(ctx context.Context, sql string) (decoder, error) {
	d, err := c.request(ctx, UUID{}, opSQLFields, func(e *encoder) {
		e.int(0) // no cache
		e.byte(0)
		e.string("SYS")
		e.int(1)  // rows a page
		e.int(-1) // rows
		e.string(sql)
		e.int(0)  // arguments
		e.byte(1) // a query
		for range 6 {
			e.bool(false) // distributed joins, local, replicated only, enforce join order, collocated, lazy
		}
		e.long(0)     // no timeout of its own
		e.bool(false) // names of the fields
	})
	if err != nil {
		return d, err
	}
	return d, oneRow(&d)
}

// oneRow reads what precedes the only row of an answer.
func oneRow(d *decoder) error {
	d.long() // cursor: it has no more pages
	d.int()  // fields
	if rows := d.int(); rows != 1 && d.err == nil {
		d.fail(errShort)
	}
	return d.err
}
