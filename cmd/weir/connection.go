package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/weir-stream/weir/internal/credentials"
)

// connection is how a command reaches a server that wants to know who asks.
type connection struct {
	tokenFile, ca, cert, key string
	// anyServer takes the server for the right one whatever it shows.
	anyServer bool

	token  string
	client *http.Client
}

// add gives a command the flags. There is none for a token itself, which
// anybody on the machine could read from the command line.
func (c *connection) add(flags *pflag.FlagSet) {
	flags.StringVar(&c.tokenFile, "token-file", "", "file whose first line is the token to show, such as api.tokens_file")
	flags.StringVar(&c.ca, "ca", "", "PEM file of the authorities that sign the server's certificate (default the system's)")
	flags.StringVar(&c.cert, "cert", "", "PEM file of the certificate to show")
	flags.StringVar(&c.key, "key", "", "PEM file of the certificate's private key")
}

// load reads the files.
func (c *connection) load() error {
	t := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.anyServer}
	if c.tokenFile != "" {
		token, err := credentials.FirstToken(c.tokenFile)
		if err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
		c.token = token
	}
	if c.ca != "" {
		var err error
		if t.RootCAs, err = credentials.Authorities(c.ca); err != nil {
			return fmt.Errorf("--ca: %w", err)
		}
	}
	if (c.cert == "") != (c.key == "") {
		return errors.New("--cert and --key belong together: give both")
	}
	if c.cert != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return fmt.Errorf("--cert: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = t
	// Another host, to which a server may send on, is not to learn the token; no
	// server of Weir's does.
	c.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return nil
}

// do asks the server.
func (c *connection) do(r *http.Request) (*http.Response, error) {
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.client.Do(r)
}
