package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/operate/preview"
	"github.com/weir-stream/weir/serve/tools"
	"github.com/weir-stream/weir/state"
)

const hungUpAnswer = `{"error":{"code":"abandoned","message":"the connection was closed on the client's side before the answer; keep it open until then"}}` + "\n"

// A client that closes only its own side of the connection is told why there is no answer, and the log says nothing of a
// store or a Kafka that would have failed.
func TestClientsThatHangUpAndRead(t *testing.T) {
	asked := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	log := new(strings.Builder)
	h := newHandler(&fakeReader{
		read:         func(ctx context.Context, _ []state.Read) ([]state.WindowState, error) { return nil, asked(ctx) },
		countBusiest: asked,
	}, func(c *setup) {
		r, err := definition.LoadFiles(inUse)
		if err != nil {
			t.Fatal(err)
		}
		c.Registry = func() *features.Registry { return r }
		c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		c.Tools = tools.Config{
			Preview: func(ctx context.Context, _ *features.Registry, _ []*features.Feature, _ time.Time) (*preview.Report, error) {
				return nil, asked(ctx)
			},
			DeadLetters: func(ctx context.Context, _ string, _ int) ([]tools.DeadLetter, error) { return nil, asked(ctx) },
			LongestKeys: func(ctx context.Context, _ int, _ time.Duration) (state.LongKeys, error) {
				return state.LongKeys{}, asked(ctx)
			},
		}
	})
	server := httptest.NewServer(h)
	for _, test := range []struct{ line, body string }{
		{"POST " + queryPath, `{"features":["paid_1h"],"entities":[{"user":"u"}]}`},
		{"GET /v1/busiest", ""},
		{"POST /v1/preview", draft("new.yaml", "features: {n_1h: 'COUNT(1h, pay, user)'}")},
		{"GET /v1/dead-letters", ""},
		{"GET /v1/greatest-keys", ""},
	} {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		fmt.Fprintf(connection, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", test.line, len(test.body), test.body)
		if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatalf("%s: %v", test.line, err)
		}
		got, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 499 || string(got) != hungUpAnswer {
			t.Errorf("%s: got %d %s, error %v; want 499 %s", test.line, response.StatusCode, got, err, hungUpAnswer)
		}
		_ = response.Body.Close()
	}
	server.Close() // then no request writes to the log any more
	if log.Len() > 0 {
		t.Errorf("the log has %q, want nothing", log)
	}
}

// A body that does not arrive in time is refused as such, although net/http then ends the request as if its client had
// hung up.
func TestBodiesThatDoNotArrive(t *testing.T) {
	server := httptest.NewUnstartedServer(newHandler(&fakeReader{}, nil))
	server.Config.ReadTimeout = 50 * time.Millisecond
	server.Start()
	defer server.Close()
	const want = `{"code":"unreadable_body","message":"the body did not arrive in time"}`
	for _, path := range []string{queryPath, "/v1/preview"} {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", path)
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 400 || string(got) != `{"error":`+want+"}\n" {
			t.Errorf("%s: got %d %s, error %v; want 400 %s", path, response.StatusCode, got, err, want)
		}
		_ = response.Body.Close()
	}
}
