package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"
)

// Certificates authenticate a server and, with authorities, its clients. It is safe for concurrent
// use.
type Certificates struct {
	*watch
	cert, key, clientCA string
	present             atomic.Pointer[tls.Config] // for connections from now on
}

// LoadCertificates reads PEM files: a server's certificate, its key and, unless the name is empty,
// the authorities that sign its clients' certificates. The error begins with the name of the
// setting in the section api.tls.
func LoadCertificates(cert, key, clientCA string) (*Certificates, error) {
	paths := []string{cert, key}
	if clientCA != "" {
		paths = append(paths, clientCA)
	}
	c := &Certificates{cert: cert, key: key, clientCA: clientCA}
	c.watch = newWatch(c.read, paths...)
	return c, c.read()
}

func (c *Certificates) read() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("api.tls.cert: %w", err)
	}
	t := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if c.clientCA != "" {
		if t.ClientCAs, err = Authorities(c.clientCA); err != nil {
			return fmt.Errorf("api.tls.client_ca: %w", err)
		}
		// Probes have no certificate. Other requests without one are refused with an answer that
		// says so.
		t.ClientAuth = tls.VerifyClientCertIfGiven
	}
	c.present.Store(t)
	return nil
}

// Authorities reads a PEM file of certificates that are trusted.
func Authorities(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", path)
	}
	return pool, nil
}

// TLS returns the configuration of a server, which follows Look.
func (c *Certificates) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.present.Load(), nil },
	}
}
