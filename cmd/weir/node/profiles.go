package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/weir-stream/weir/serve/access"
)

// profiles serves the profiles of the process on a listener of its own: they reveal more than a
// client of the API should know, and take long.
type profiles struct {
	http     http.Server
	listener net.Listener
}

// startProfiles serves profiles on an address; without a host, on this machine only. It is nil
// without an address. Only requests to known hosts are answered.
func startProfiles(address string, hosts access.Hosts, log *slog.Logger) (*profiles, error) {
	if address == "" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("profiles.listen: %w", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	p := &profiles{http: http.Server{
		Handler: hosts.Only(mux), ReadHeaderTimeout: 5 * time.Second,
		// A profile takes as long as requested, so writing has no timeout.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	if p.listener, err = net.Listen("tcp", net.JoinHostPort(host, port)); err != nil {
		return nil, fmt.Errorf("profiles.listen: %w", err)
	}
	go func() { _ = p.http.Serve(p.listener) }() // until close
	log.Info("profiles are served", "address", p.listener.Addr())
	return p, nil
}

// run serves until the context ends.
func (p *profiles) run(ctx context.Context) {
	<-ctx.Done()
	p.close()
}

// close ends running profiles.
func (p *profiles) close() {
	if p != nil {
		_ = p.http.Close()
	}
}
