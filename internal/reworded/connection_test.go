package reworded_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/reworded"
)

// listen accepts connections and hands each to what serves it.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
		}
	}()
	return l.Addr().String()
}

func TestConnection(t *testing.T) {
	encrypted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(encrypted.Close)
	clear := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(clear.Close)
	closing := listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4<<10)) // closing with the request unread is a reset, which names the server
		_ = c.Close()
	})
	silent := listen(t, func(c net.Conn) { t.Cleanup(func() { _ = c.Close() }) })
	ofOthers := encrypted.Client()
	address := strings.TrimPrefix(encrypted.URL, "https://")
	ofOthers.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return net.Dial("tcp", address) }
	impatient := &http.Client{Timeout: 50 * time.Millisecond}

	for _, c := range []struct {
		client    *http.Client
		url, want string
	}{
		{http.DefaultClient, "http://127.0.0.1:1", "nothing listens at 127.0.0.1:1: check the address, and that the server runs"},
		{http.DefaultClient, encrypted.URL, "the server's certificate is signed by an unknown authority: name the authority's file (ca)"},
		{ofOthers, "https://weir.test", "the server's certificate is not for weir.test: use a name that it has, or set tls.server_name"},
		{http.DefaultClient, "http://" + closing, "the server closes the connection at once: check whether it wants TLS or none, a client certificate, and a login"},
		{http.DefaultClient, strings.Replace(clear.URL, "http", "https", 1), "the server does not speak TLS at this address: use its address for TLS, or no TLS"},
		{impatient, "http://" + silent, "the server does not answer in time: check the address, what firewalls allow, and whether it wants TLS or none"},
	} {
		_, err := c.client.Get(c.url)
		if got := reworded.Connection(err); got == nil || got.Error() != c.want || !errors.Is(got, err) {
			t.Errorf("%s: %v\ngot  %v\nwant %s", c.url, err, got, c.want)
		}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&net.DNSError{Err: "no such host", Name: "kafka", IsNotFound: true}, "there is no host kafka: check the name"},
		{&net.DNSError{Err: "server misbehaving", Name: "kafka"}, "the name kafka cannot be resolved: check this machine's DNS"},
		{&net.OpError{Op: "read", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9092}, Err: syscall.ECONNRESET}, "10.0.0.1:9092 closes the connection at once: check whether it wants TLS or none, a client certificate, and a login"},
		{&net.OpError{Op: "listen", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}, "another process listens there: choose another address, or stop it"},
		{io.ErrClosedPipe, io.ErrClosedPipe.Error()},
	} {
		if got := reworded.Connection(c.err); got.Error() != c.want {
			t.Errorf("%v\ngot  %v\nwant %s", c.err, got, c.want)
		}
	}
}

func TestURL(t *testing.T) {
	if err := reworded.URL("https://weir:8080"); err != nil {
		t.Error(err)
	}
	for _, address := range []string{"http://a b", "http://%zz", "http://", "ftp://weir"} {
		if err := reworded.URL(address); err == nil || !strings.HasSuffix(err.Error(), " is not an address such as http://weir:8080") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
