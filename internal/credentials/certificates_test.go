package credentials_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/internal/testkit/auth"
)

// meet lets a client and the server shake hands; it returns what the client
// found of the server and the server of the client.
func meet(t *testing.T, c *credentials.Certificates, client *tls.Config) (serverName string, verified bool, err error) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", c.TLS())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	type met struct {
		verified bool
		err      error
	}
	side := make(chan met, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			side <- met{err: err}
			return
		}
		defer conn.Close()
		err = conn.(*tls.Conn).Handshake()
		side <- met{len(conn.(*tls.Conn).ConnectionState().VerifiedChains) > 0, err}
	}()
	conn, err := tls.Dial("tcp", listener.Addr().(*net.TCPAddr).String(), client)
	if err == nil {
		serverName = conn.ConnectionState().PeerCertificates[0].Subject.CommonName
		conn.Close()
	}
	m := <-side
	if err == nil {
		err = m.err
	}
	return serverName, m.verified, err
}

func TestCertificatesThatChange(t *testing.T) {
	ours, theirs := auth.NewAuthority(t), auth.NewAuthority(t)
	cert, key := ours.Issue("server")
	c, err := credentials.LoadCertificates(cert, key, ours.CA)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := credentials.Authorities(ours.CA)
	if err != nil {
		t.Fatal(err)
	}
	as := func(a *auth.Authority, name string) *tls.Config {
		cert, key := a.Issue(name)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{RootCAs: trusted, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}
	}
	if name, verified, err := meet(t, c, &tls.Config{RootCAs: trusted}); name != "server" || verified || err != nil {
		t.Errorf("a client without a certificate: server %q, verified %v, error %v", name, verified, err)
	}
	if name, verified, err := meet(t, c, as(ours, "engine")); name != "server" || !verified || err != nil {
		t.Errorf("a client with our certificate: server %q, verified %v, error %v", name, verified, err)
	}
	if _, verified, err := meet(t, c, as(theirs, "foreign")); verified || err == nil {
		t.Errorf("a client with a foreign certificate: verified %v, error %v; want only an error", verified, err)
	}

	// A certificate without its key changes nothing.
	whole, _ := ours.Issue("renewed")
	replace(t, whole, cert)
	if changed, err := c.Look(); changed || err != nil {
		t.Errorf("unchanged files: Look = %v, %v; want false", changed, err)
	}
	if changed, err := c.Look(); changed || fmt.Sprint(err) != "api.tls.cert: tls: private key does not match public key" {
		t.Errorf("a certificate that does not match its key: Look = %v, %v", changed, err)
	}
	if name, _, err := meet(t, c, &tls.Config{RootCAs: trusted}); name != "server" || err != nil {
		t.Errorf("with bad files: server %q, error %v; want the earlier certificate", name, err)
	}
	replace(t, filepath.Join(filepath.Dir(whole), "renewed.key"), key)
	if _, err := c.Look(); err != nil {
		t.Error(err)
	}
	if changed, err := c.Look(); !changed || err != nil {
		t.Errorf("a renewed certificate: Look = %v, %v; want true", changed, err)
	}
	if name, _, err := meet(t, c, &tls.Config{RootCAs: trusted}); name != "renewed" || err != nil {
		t.Errorf("after a renewal: server %q, error %v; want renewed", name, err)
	}
}

func replace(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(content))
}

func TestUnusableCertificates(t *testing.T) {
	a := auth.NewAuthority(t)
	cert, key := a.Issue("server")
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	write(t, notPEM, "no certificate")
	for _, c := range []struct{ cert, key, ca, want string }{
		{"/none.pem", key, "", "api.tls.cert: open /none.pem: no such file or directory"},
		{cert, "/none.key", "", "api.tls.cert: open /none.key: no such file or directory"},
		{cert, key, "/none.pem", "api.tls.client_ca: open /none.pem: no such file or directory"},
		{cert, key, notPEM, "api.tls.client_ca: " + notPEM + " holds no certificate in PEM form"},
	} {
		if _, err := credentials.LoadCertificates(c.cert, c.key, c.ca); fmt.Sprint(err) != c.want {
			t.Errorf("\ngot  %v\nwant %s", err, c.want)
		}
	}
}
