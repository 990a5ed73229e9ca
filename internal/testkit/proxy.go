package testkit

import (
	"net"
	"sync"
	"testing"
	"time"
)

// FaultyProxy is a TCP proxy on 127.0.0.1 that can cut, delay and hang its connections.
type FaultyProxy struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	cut    bool
	delay  time.Duration
	losing bool          // the next reply of each connection is lost
	hung   chan struct{} // closed by Heal; nil while not hung
	conns  map[net.Conn]struct{}
	wg     sync.WaitGroup
}

// Proxy starts a proxy before target, host:port. It stops when the test ends.
func Proxy(t testing.TB, target string) *FaultyProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &FaultyProxy{target: target, listener: l, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// Addr returns the address at which the proxy listens.
func (p *FaultyProxy) Addr() string { return p.listener.Addr().String() }

// Cut resets all connections, and new ones as they come: bytes in flight are lost in both
// directions.
func (p *FaultyProxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.resume()
	for c := range p.conns {
		reset(c)
	}
}

// Heal undoes Cut, Hang and LoseReplies, and forwards what was held back by Hang.
func (p *FaultyProxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.losing = false, false
	p.resume()
}

// Hang accepts new connections and keeps open ones, but forwards nothing until Heal.
func (p *FaultyProxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hung == nil {
		p.hung = make(chan struct{})
	}
}

// resume ends Hang. p.mu must be held.
func (p *FaultyProxy) resume() {
	if p.hung != nil {
		close(p.hung)
		p.hung = nil
	}
}

// LoseReplies resets each connection when its next reply comes, until Heal: the server has executed
// the request, and the client gets no reply.
func (p *FaultyProxy) LoseReplies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losing = true
}

// Retarget sends new connections to another server, as a DNS name or a virtual address does after a
// failover. Open connections are reset.
func (p *FaultyProxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for c := range p.conns {
		reset(c)
	}
}

// Delay delays every chunk by d, in both directions, so that a reply comes at least 2·d after its
// request.
func (p *FaultyProxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *FaultyProxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return // closed when the test ends
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		to, err := net.Dial("tcp", target)
		if err != nil {
			reset(from)
			continue
		}
		if !p.track(target, from, to) {
			reset(from)
			reset(to)
			continue
		}
		p.wg.Go(func() { p.copy(to, from, false) })
		p.wg.Go(func() { p.copy(from, to, true) })
	}
}

// track registers a pair for Cut. It returns false if the pair came while the proxy was cut, or was
// connecting to an earlier target.
func (p *FaultyProxy) track(target string, a, b net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || target != p.target {
		return false
	}
	p.conns[a], p.conns[b] = struct{}{}, struct{}{}
	return true
}

// copy closes both connections when either side is closed: the protocols in tests have no
// half-closed connections.
func (p *FaultyProxy) copy(dst, src net.Conn, replies bool) {
	defer func() {
		_ = dst.Close()
		_ = src.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, dst)
		delete(p.conns, src)
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		delay, lost, hung := p.delay, replies && p.losing, p.hung
		p.mu.Unlock()
		if hung != nil {
			<-hung
		}
		if lost {
			reset(dst)
			return
		}
		if delay > 0 {
			<-time.After(delay)
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}

// reset closes a connection at once and drops what is buffered.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
