package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-stream/weir/serve/reply"
)

// counting counts what is written to a listener's connections.
type counting struct {
	net.Listener
	writes *atomic.Int64
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &countedConn{c, l.writes}, err
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// An answer longer than net/http's buffer is sent in one write, unless it is very long or shares its connection with
// others.
func TestAnswersAreSentInOneWrite(t *testing.T) {
	about := func(entities int) string {
		list := make([]string, entities)
		for i := range list {
			list[i] = fmt.Sprintf(`{"device_id": "d%d"}`, i)
		}
		return `{"features": ["device_tx_7d"], "entities": [` + strings.Join(list, ",") + `]}`
	}
	h := newHandler(&fakeReader{states: stored()}, func(c *setup) {
		c.Limits.InFlight = 4 << 30 // for all 50 questions together
	})
	for _, test := range []struct {
		name               string
		encrypted, streams bool
		entities           int
		writes             int64 // 0 for any number
	}{
		{"a short one", false, false, 1, 1},
		{"a longer one", false, false, 60, 1},
		{"a longer one, encrypted", true, false, 60, 1},
		{"a longer one over HTTP/2", true, true, 60, 0},
		{"one too long to be held back", false, false, 1000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var writes atomic.Int64
			s := httptest.NewUnstartedServer(h)
			s.Listener = reply.NewListener(counting{s.Listener, &writes}, 10)
			s.Config.ConnContext = reply.WithConnection
			s.EnableHTTP2 = test.streams
			if test.encrypted {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			question := about(test.entities)
			want := do(t, h, "POST", queryPath, question).Body.String()
			ask := func() {
				r, err := s.Client().Post(s.URL+queryPath, "application/json", strings.NewReader(question))
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Body.Close()
				got, err := io.ReadAll(r.Body)
				if err != nil || r.StatusCode != http.StatusOK || string(got) != want {
					t.Errorf("%s, error %v, got\n%.300s\nwant\n%.300s", r.Status, err, got, want)
				}
			}
			ask() // sets up the connection
			before := writes.Load()
			ask()
			if n := writes.Load() - before; test.writes > 0 && n != test.writes {
				t.Errorf("%d bytes were sent in %d writes, want %d", len(want), n, test.writes)
			}
			var several sync.WaitGroup
			for range 50 {
				several.Go(ask)
			}
			several.Wait()
		})
	}
}

// A refusal of a question that was not read to its end arrives: the server closes its own side of
// the connection first, and then the other.
func TestRefusalArrivesBeforeTheReset(t *testing.T) {
	s, err := Start("127.0.0.1:0", newHandler(&fakeReader{}, nil), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const size = 8 << 20
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: weir\r\nContent-Length: %d\r\n\r\n", queryPath, size)
	if _, err := c.Write(make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c) // to the end, not to a reset
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 413 ") {
		t.Errorf("error %v, answer %.100q; want 413", err, answer)
	}
}
