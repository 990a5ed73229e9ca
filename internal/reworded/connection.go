package reworded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// reworded is an error with another text.
type reworded struct {
	text  string
	cause error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.cause }

// As gives an error another text, and wraps it.
func As(err error, text string) error { return &reworded{text, err} }

// Part gives a part of an error another text. The rest, which says what was being done, stays. The result wraps err.
func Part(err, part, by error) error {
	return As(err, strings.Replace(err.Error(), part.Error(), by.Error(), 1))
}

// Plainly replaces the part of an error that says why a connection failed by plain words. The result wraps err.
func Plainly(err error) error {
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return Part(err, operation, Connection(operation))
	}
	return err
}

// Connection returns an error that says why a server could not be reached or cannot listen, and what to do. It returns
// other errors unchanged. The result wraps err.
func Connection(err error) error {
	if text := connection(err); text != "" {
		return As(err, text)
	}
	return err
}

func connection(err error) string {
	var (
		operation *net.OpError
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		plainText tls.RecordHeaderError
		slow      net.Error
	)
	at := "the server"
	if errors.As(err, &operation) && operation.Addr != nil {
		at = operation.Addr.String()
	}
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Sprintf("there is no host %s: check the name", name.Name)
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s cannot be resolved: check this machine's DNS", name.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at %s: check the address, and that the server runs", at)
	case errors.Is(err, syscall.EADDRINUSE):
		return "another process listens there: choose another address, or stop it"
	case errors.As(err, &authority):
		return "the server's certificate is signed by an unknown authority: name the authority's file (ca)"
	case errors.As(err, &host):
		return fmt.Sprintf("the server's certificate is not for %s: use a name that it has, or set tls.server_name", host.Host)
	case errors.As(err, &invalid):
		return "the server's certificate is not valid now, or not for servers: renew it"
	case errors.As(err, &plainText), errors.Is(err, http.ErrSchemeMismatch):
		return "the server does not speak TLS at this address: use its address for TLS, or no TLS"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return at + " does not answer in time: check the address, what firewalls allow, and whether it wants TLS or none"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return at + " closes the connection at once: check whether it wants TLS or none, a client certificate, and a login"
	}
	return ""
}

// URL returns an error unless an address is an HTTP URL, such as http://weir:8080.
func URL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		return fmt.Errorf("%q is not an address such as http://weir:8080", address)
	}
	return nil
}
