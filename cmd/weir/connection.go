package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/weir-stream/weir/internal/credentials"
)

// connection is how a command reaches a server that requires authentication.
type connection struct {
	tokenFile, ca, cert, key string
	// anyServer accepts any server certificate.
	anyServer bool

	token  string
	client *http.Client
}

// add adds the flags to a command. There is none for a token itself, because any user of the
// machine could read it from the command line.
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
	// The token must not be sent to another host by a redirect; no Weir server redirects.
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
