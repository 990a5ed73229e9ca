package integration_test

import (
	binaries "encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// killingProxy is a proxy before a broker. It counts requests and calls kill at one of them: before
// the broker gets the request, or after it has answered and before the client gets the response.
type killingProxy struct {
	t        testing.TB
	listener net.Listener

	mu     sync.Mutex
	target string
	keys   []int16 // the API keys that count
	left   int     // requests until kill; 0 for never
	after  bool
	kill   func()
}

func newKillingProxy(t testing.TB) *killingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &killingProxy{t: t, listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed when the test ends
			}
			go p.serve(client)
		}
	}()
	return p
}

// arm makes the proxy kill at the nth request with one of the keys.
func (p *killingProxy) arm(n int, after bool, kill func(), keys ...int16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.after, p.kill, p.keys = n, after, kill, keys
}

// disarm stops counting and reports whether the proxy has killed.
func (p *killingProxy) disarm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	killed := p.left == 0
	p.left = 0
	return killed
}

// due reports whether the request is the one to kill at.
func (p *killingProxy) due(key int16) (kill func(), after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 || !slices.Contains(p.keys, key) {
		return nil, false
	}
	if p.left--; p.left > 0 {
		return nil, false
	}
	return p.kill, p.after
}

// serve forwards requests one by one, each with its response.
func (p *killingProxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	broker, err := net.Dial("tcp", target)
	if err != nil {
		return // the broker is down
	}
	defer broker.Close()
	for {
		request, err := frame(client)
		if err != nil {
			return
		}
		kill, after := p.due(int16(binaries.BigEndian.Uint16(request[4:])))
		if kill != nil && !after {
			kill()
			return
		}
		if _, err := broker.Write(request); err != nil {
			return
		}
		response, err := frame(broker)
		if kill != nil {
			kill()
			return
		}
		if err != nil {
			return
		}
		if _, err := client.Write(response); err != nil {
			return
		}
	}
}

// frame reads a request or a response with its length.
func frame(from io.Reader) ([]byte, error) {
	size := make([]byte, 4)
	if _, err := io.ReadFull(from, size); err != nil {
		return nil, err
	}
	b := append(size, make([]byte, binaries.BigEndian.Uint32(size))...)
	_, err := io.ReadFull(from, b[4:])
	return b, err
}
