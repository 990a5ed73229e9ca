package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/serve/status"
)

func newHealthCommand() *cobra.Command {
	var (
		address, file string
		timeout       time.Duration
		server        connection
	)
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running process whether it is ready",
		Long: `Ask a running process whether it is ready (GET /readyz). The exit code is 0 if it is,
and 1 if not, with the reasons. This is the health check of containers without a
shell. Without --address the process is the one that the settings describe, on this
machine.`,
		Example: `  weir health
  weir health --address http://weir.example.com:8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address == "" {
				cfg, err := config.Load(file, nil)
				if err != nil {
					return err
				}
				address = "http://" + nearby(cfg.API.Listen)
				if cfg.API.TLS.Cert != "" {
					// Its certificate names the service, not this machine, so nothing secret may be
					// sent to it.
					if server.tokenFile != "" {
						return errTokenNeedsAddress
					}
					address = "https://" + nearby(cfg.API.Listen)
					server.anyServer = true
				}
			}
			if err := server.load(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := askReady(ctx, &server, serverURL(address)); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&address, "address", "", "URL of the process (default that of api.listen)")
	server.add(flags)
	flags.StringVar(&file, "config", "", "file of settings that the process runs with (default the one in WEIR_CONFIG)")
	flags.DurationVar(&timeout, "timeout", 3*time.Second, "how long to wait for an answer")
	return cmd
}

// errTokenNeedsAddress refuses to send a token to whoever answers.
var errTokenNeedsAddress = errors.New("--token-file needs --address, with the name in the certificate of the process: " +
	"without it the certificate is not checked, and no token is sent")

// nearby returns the address at which this machine reaches a server that listens on an address.
func nearby(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// serverURL completes the address of a server.
func serverURL(address string) string {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return strings.TrimSuffix(address, "/")
}

// askReady returns nil if the process at a URL is ready, and else what is missing.
func askReady(ctx context.Context, server *connection, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("--address: %w", reworded.URL(url))
	}
	response, err := server.do(request)
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", url, reworded.Connection(err))
	}
	defer response.Body.Close()
	var answer status.Readiness
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Checks == nil {
		return fmt.Errorf("%s/readyz answered %s; is it a weir server?", url, response.Status)
	}
	if answer.Ready {
		return nil
	}
	var lacks []string
	for _, check := range answer.Checks {
		if !check.Ready {
			lacks = append(lacks, check.Name+": "+check.Error)
		}
	}
	return fmt.Errorf("not ready: %s", strings.Join(lacks, "; "))
}
