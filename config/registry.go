package config

import (
	"fmt"
	"net/http"

	"github.com/twmb/franz-go/pkg/sr"
)

// SchemaRegistry makes the client of the Schema Registry; nil if none is configured. The error
// names the setting that TLS cannot work with.
func (c *Config) SchemaRegistry() (*sr.Client, error) {
	r := c.Registry
	encryption, err := r.TLS.config("registry.tls")
	if err != nil || r.URL == "" {
		return nil, err
	}
	if !plainURL(r.URL) { // from a flag: it is not shown by the client, which would show a password in it
		return nil, fmt.Errorf("the URL of the Schema Registry, %q, must be like https://registry:8081, and the login be in registry.username and registry.password",
			withoutPasswords(r.URL))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = encryption
	return sr.NewClient(sr.URLs(r.URL), sr.UserAgent("weir"), sr.HTTPClient(&http.Client{Transport: transport, Timeout: r.Timeout}), sr.PreReq(r.login))
}

// login authenticates a request; credentials in files are read again.
func (r Registry) login(req *http.Request) error {
	if r.Username != "" {
		password, err := secret("registry.password_file", r.PasswordFile, r.Password)
		req.SetBasicAuth(r.Username, password)
		return err
	}
	token, err := secret("registry.token_file", r.TokenFile, r.Token)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return err
}
