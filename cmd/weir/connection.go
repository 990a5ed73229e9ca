package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/serve/reply"
)

// connection is how a command reaches a server that requires authentication.
type connection struct {
	tokenFile, ca, cert, key string
	// anyServer accepts any server certificate.
	anyServer bool
	// flag gives the server's address, for messages; empty if an argument does.
	flag string

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

// call sends a request to the server at an address and decodes its answer. A *reply.Error is the
// server's refusal, with its status.
func (c *connection) call(ctx context.Context, method, address, path string, body []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, address+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(c.flag, "bad address"), reworded.URL(address))
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.do(request)
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", strings.TrimSpace(c.flag+" "+address), reworded.Connection(cmp.Or(errors.Unwrap(err), err)))
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("the answer of %s broke off: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		var failure struct{ Error *reply.Error }
		if json.Unmarshal(content, &failure) != nil || failure.Error == nil {
			return fmt.Errorf("%s%s answered %s; is it a weir server?", address, path, response.Status)
		}
		failure.Error.Status = response.StatusCode
		return failure.Error
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return fmt.Errorf("%s%s did not answer in JSON; is it a weir server?", address, path)
	}
	return nil
}
