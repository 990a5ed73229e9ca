package config

import (
	"net/http"

	"github.com/twmb/franz-go/pkg/sr"
)

// SchemaRegistry makes the client of the Schema Registry; nil where none is named.
// The error names the setting that TLS cannot work with.
func (c *Config) SchemaRegistry() (*sr.Client, error) {
	r := c.Registry
	encryption, err := r.TLS.config("registry.tls")
	if err != nil || r.URL == "" {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = encryption
	return sr.NewClient(sr.URLs(r.URL), sr.UserAgent("weir"), sr.HTTPClient(&http.Client{Transport: transport, Timeout: r.Timeout}), sr.PreReq(r.login))
}

// login shows a request's sender; what files hold is read anew.
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
