package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// A question being answered when the server is shut down gets its answer, and later ones get no
// connection.
func TestShutdownWaitsForAnswers(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	reader := &fakeReader{read: func(context.Context, []state.Read) ([]state.WindowState, error) {
		close(arrived)
		<-release
		return make([]state.WindowState, 1), nil
	}}
	s, err := Start("127.0.0.1:0", newHandler(reader, nil), nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + s.Addr().String() + queryPath
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Post(url, "application/json", strings.NewReader(good))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		answer <- resp.Status
	}()
	<-arrived
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(t.Context()) }()
	if err := <-s.Done(); err != nil { // accepts no more connections
		t.Errorf("serving ended with the error %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("the shutdown ended before the answer, with error %v", err)
	default:
	}
	close(release)
	if got := <-answer; got != "200 OK" {
		t.Errorf("the question in flight got %q, want 200 OK", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the shutdown failed: %v", err)
	}
	if _, err := http.Get(url); err == nil {
		t.Errorf("a connection was accepted after the shutdown")
	}
}

// The connection of an answer that is not ready is closed when the time to shut down is over.
func TestShutdownEnds(t *testing.T) {
	arrived := make(chan struct{})
	reader := &fakeReader{read: func(ctx context.Context, _ []state.Read) ([]state.WindowState, error) {
		close(arrived)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	h := newHandler(reader, func(c *setup) { c.Limits.Timeout = time.Minute })
	s, err := Start("127.0.0.1:0", h, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	go func() {
		resp, err := http.Post("http://"+s.Addr().String()+queryPath, "application/json", strings.NewReader(good))
		if err == nil {
			resp.Body.Close()
		}
		asked <- err
	}()
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v, want context canceled", err)
	}
	if err := <-asked; err == nil {
		t.Errorf("the interrupted question got an answer")
	}
}

func TestStartOnAnAddressInUse(t *testing.T) {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := Start("127.0.0.1:0", http.NotFoundHandler(), nil, logger)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Shutdown(t.Context()) }()
	address := s.Addr().String()
	_, err = Start(address, http.NotFoundHandler(), nil, logger)
	if want := "serve on " + address + ": listen tcp " + address + ": bind: address already in use"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
