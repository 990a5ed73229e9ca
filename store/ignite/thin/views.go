package thin

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// SplitError is the error about nodes that are in different clusters: each side goes on without the other one, or they
// were never one. Nothing is asked of any, since the state of one side may lack what the other one has.
type SplitError struct {
	Sides [][]string // addresses of nodes that see each other
}

func (e *SplitError) Error() string {
	var sides []string
	for _, s := range e.Sides {
		sides = append(sides, strings.Join(s, ", "))
	}
	return "these nodes are in different clusters: " + strings.Join(sides, " | ") +
		". If they should be in one, restart all but those of one side; else name only nodes of one cluster"
}

// view is which nodes a node sees in its cluster.
type view struct {
	address string
	node    UUID
	sees    []UUID
}

// sides groups nodes so that those of a side see each other.
func sides(views []view) (list [][]string) {
	var grouped [][]view
	for _, v := range views {
		side := slices.IndexFunc(grouped, func(side []view) bool {
			return !slices.ContainsFunc(side, func(of view) bool { return !slices.Contains(of.sees, v.node) || !slices.Contains(v.sees, of.node) })
		})
		if side < 0 {
			side = len(grouped)
			grouped, list = append(grouped, nil), append(list, nil)
		}
		grouped[side], list[side] = append(grouped[side], v), append(list[side], v.address)
	}
	return list
}

// patience is how long nodes may see different clusters, as they do for a moment when one joins or leaves, until
// requests fail at once.
const patience = 5 * time.Second

// lookEvery is how often nodes that see different clusters are asked again.
const lookEvery = 100 * time.Millisecond

// membership is what is known of the cluster that the connected nodes are in.
type membership struct {
	mu      sync.Mutex
	settled chan struct{} // closed once requests need not wait to hear whether nodes are in one cluster
	looking bool          // the nodes are asked
	split   *SplitError   // what they said last; nil if they are in one cluster
}

// changed notes that the topology has changed or a connection was made. Requests wait until the nodes were asked whom they see.
func (c *Client) changed() {
	c.changes.Add(1)
	m := &c.membership
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.looking {
		m.looking, m.settled = true, make(chan struct{})
		go c.look()
	}
}

// look asks the connected nodes whom they see until they agree, and nothing has changed meanwhile.
func (c *Client) look() {
	m := &c.membership
	wait := time.NewTimer(0)
	defer wait.Stop()
	impatient := time.Now().Add(patience)
	for settled := false; ; {
		changes := c.changes.Load()
		found := sides(c.views())
		m.mu.Lock()
		m.looking = len(found) > 1 || changes != c.changes.Load()
		if len(found) > 1 {
			m.split = &SplitError{found}
		} else if !m.looking {
			m.split = nil
		}
		if !settled && (!m.looking || m.split != nil && time.Now().After(impatient)) {
			settled = true
			close(m.settled)
		}
		again := m.looking
		m.mu.Unlock()
		switch {
		case !again:
			return
		case len(found) < 2: // something has changed meanwhile
			continue
		}
		wait.Reset(lookEvery)
		select {
		case <-wait.C:
		case <-c.closed:
			return
		}
	}
}

// views asks the connected nodes whom they see. The connection to one that does not say it is given up.
func (c *Client) views() (list []view) {
	ctx, cancel := context.WithTimeout(context.Background(), c.config.Request)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, n := range c.nodes {
		to := n.usable()
		if to == nil {
			continue
		}
		asking.Go(func() {
			sees, err := to.sees(ctx)
			if err != nil {
				to.lose(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			list = append(list, view{to.address, to.node, sees})
		})
	}
	asking.Wait()
	slices.SortFunc(list, func(a, b view) int { return strings.Compare(a.address, b.address) })
	return list
}

// sees returns the nodes that the node sees in its cluster, itself among them.
func (c *conn) sees(ctx context.Context) ([]UUID, error) {
	d, err := c.request(ctx, opNodes, func(e *encoder) {
		e.long(0) // whatever the topology was before
		e.int(0)  // all nodes
	})
	if err != nil {
		return nil, err
	}
	return nodes(&d)
}

// nodes reads which nodes there are.
func nodes(d *decoder) (list []UUID, err error) {
	if d.bool() {
		d.long() // version of the topology
		for range d.count(16) {
			list = append(list, UUID{uint64(d.long()), uint64(d.long())})
		}
	}
	return list, d.err
}

// whole waits until it is known whether the connected nodes are in one cluster. If not, that is a SplitError.
func (c *Client) whole(ctx context.Context) error {
	c.membership.mu.Lock()
	settled := c.membership.settled
	c.membership.mu.Unlock()
	select {
	case <-settled:
		return c.splitError()
	case <-ctx.Done():
		if err := c.splitError(); err != nil {
			return err
		}
		return ctx.Err()
	}
}

// splitError returns the SplitError about the connected nodes; nil if they are in one cluster, as far as is known.
func (c *Client) splitError() error {
	c.membership.mu.Lock()
	defer c.membership.mu.Unlock()
	if c.membership.split != nil {
		return c.membership.split
	}
	return nil
}
