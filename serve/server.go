package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/weir-stream/weir/serve/reply"
)

// writeTimeout bounds the time from the end of a request's headers to the end of its answer.
const writeTimeout = 30 * time.Second

// maxConnections bounds what connections take of memory: each up to some 80 KB while its headers are read. More of them wait until
// one is closed.
const maxConnections = 4096

// Server serves a handler on an address.
type Server struct {
	http     http.Server
	listener net.Listener
	done     chan error
}

// Start listens on an address and serves, encrypted unless the configuration is nil. The logger
// receives errors of single connections.
func Start(address string, h http.Handler, encryption *tls.Config, logger *slog.Logger) (*Server, error) {
	return start(address, h, encryption, logger, maxConnections)
}

func start(address string, h http.Handler, encryption *tls.Config, logger *slog.Logger, connections int) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve on %s: %w", address, err)
	}
	s := &Server{
		http: http.Server{
			Handler:           h,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
			TLSConfig:         encryption,
			ConnContext:       reply.WithConnection,
			ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		},
		listener: reply.NewListener(listener, connections),
		done:     make(chan error, 1),
	}
	go func() {
		var err error
		if encryption == nil {
			err = s.http.Serve(s.listener)
		} else {
			err = s.http.ServeTLS(s.listener, "", "")
		}
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.done <- err
		close(s.done)
	}()
	return s, nil
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Done receives the error that ended serving, nil after Shutdown, and is then closed.
func (s *Server) Done() <-chan error { return s.done }

// Shutdown accepts no more connections and waits for the questions being answered. If ctx ends first, it closes their
// connections and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}
