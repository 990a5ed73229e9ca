package fetch

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	kgoplain "github.com/twmb/franz-go/pkg/sasl/plain"
)

// selfSigned is a server's TLS configuration for 127.0.0.1 and a client's that trusts it.
func selfSigned(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: pool}
}

func TestTLSAndSASL(t *testing.T) {
	server, client := selfSigned(t)
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "t"), kfake.TLS(server), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "reader", "secret"))
	cl := newClient(t, c, kgo.DialTLSConfig(client.Clone()), kgo.SASL(kgoplain.Auth{User: "reader", Pass: "secret"}.AsMechanism()))
	for i := range int32(4) {
		produce(t, cl, numbered("t", i, 0, 2)...)
	}
	p := newPoller(t, c, func(cfg *PollerConfig) {
		transport := cfg.Transport.(*kafka.Transport)
		transport.TLS, transport.SASL = client, plain.Mechanism{Username: "reader", Password: "secret"}
	})
	for i := range int32(4) {
		p.Add("t", i, 0)
	}
	for range 4 {
		if got := pollUntil(t, p, 2); len(got) != 2 {
			t.Errorf("records %v, want 2", got)
		}
	}

	refused := newPoller(t, c, func(cfg *PollerConfig) {
		transport := cfg.Transport.(*kafka.Transport)
		transport.TLS, transport.SASL = client, plain.Mechanism{Username: "reader", Password: "wrong"}
	})
	_, err := refused.offsets(testContext(t), "t", 0)
	if err == nil || !strings.HasPrefix(err.Error(), "fetch: metadata: ") {
		t.Errorf("error %v, want one about metadata", err)
	}
}

// wire is a connection whose both directions are in memory.
type wire struct {
	sent     bytes.Buffer
	received bytes.Reader
}

func (w *wire) Write(p []byte) (int, error) { return w.sent.Write(p) }
func (w *wire) Read(p []byte) (int, error)  { return w.received.Read(p) }

// offering is a broker's response that offers Fetch up to a version; no API where that is negative.
func offering(version int16) []byte {
	response := kmsg.NewPtrApiVersionsResponse()
	if version >= 0 {
		response.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: int16(kmsg.Fetch), MaxVersion: version}}
	}
	body := response.AppendTo([]byte{0, 0, 0, 1})
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestExchangeErrors(t *testing.T) {
	tests := []struct {
		name     string
		version  int16
		response []byte
		want     string
	}{
		{"old broker", 3, nil, "fetch: the broker offers Fetch v3, at least v4 is needed"},
		{"broker without the API", -1, nil, "fetch: the broker does not offer Fetch, of which at least v4 is needed"},
		{"closed connection", 11, nil, "EOF"},
		{"cut header", 11, []byte{0, 0, 0, 9, 0}, "unexpected EOF"},
		{"cut body", 11, []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 5, 5}, "unexpected EOF"},
		{"other correlation", 11, []byte{0, 0, 0, 4, 0, 0, 0, 2},
			"fetch: a response of 0 bytes with correlation id 2, expected 1"},
		{"negative size", 11, []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1},
			"fetch: a response of -5 bytes with correlation id 1, expected 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := new([]byte)
			e := &exchange{ctx: context.Background(), offers: &offers{}, request: kmsg.NewPtrFetchRequest(), body: body}
			if !e.Required(nil) {
				t.Fatal("Required is false, so kafka-go would not use this exchange")
			}
			var w wire
			w.received.Reset(append(offering(test.version), test.response...))
			if _, err := e.RawExchange(&w); err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if cap(*body) > 2<<20 {
				t.Errorf("%d bytes were allocated for a response that did not arrive", cap(*body))
			}
		})
	}
}

// The end of the context must end the exchange itself: kafka-go would continue waiting for the response on its own.
func TestExchangeEndsWithItsContext(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.ReadFull(server, make([]byte, 8)) // the request has begun to arrive
		cancel()
	}()
	e := &exchange{ctx: ctx, offers: &offers{}, request: kmsg.NewPtrFetchRequest(), body: new([]byte)}
	if _, err := e.RawExchange(client); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

// slowDeadline is a connection whose response arrives while a deadline is being set.
type slowDeadline struct {
	net.Conn
	wire
	setting  chan struct{}
	finished atomic.Bool
}

func (s *slowDeadline) Write(p []byte) (int, error) { return s.wire.Write(p) }

func (s *slowDeadline) Read(p []byte) (int, error) {
	<-s.setting
	return s.wire.Read(p)
}

func (s *slowDeadline) SetDeadline(time.Time) error {
	close(s.setting)
	<-time.After(time.Second)
	s.finished.Store(true)
	return nil
}

// A deadline that is set late would affect the next request on the connection.
func TestExchangeLeavesNoDeadlineBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &slowDeadline{setting: make(chan struct{})}
		conn.received.Reset(append(offering(11), 0, 0, 0, 4, 0, 0, 0, 1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e := &exchange{ctx: ctx, offers: &offers{}, request: kmsg.NewPtrFetchRequest(), body: new([]byte)}
		if _, err := e.RawExchange(conn); err != nil {
			t.Error(err)
		}
		if !conn.finished.Load() {
			t.Error("the exchange has ended before the deadline was set")
		}
		<-time.After(2 * time.Second)
	})
}

func TestChooseVersion(t *testing.T) {
	for _, c := range []struct {
		offered versionRange
		most    int16
		want    int16
		err     string
	}{
		{versionRange{0, 11}, 0, 11, ""},
		{versionRange{4, 18}, 0, 13, ""},
		{versionRange{4, 18}, fetchByName, 12, ""},
		{versionRange{0, 3}, 0, 0, "fetch: the broker offers Fetch v3, at least v4 is needed"},
		{versionRange{14, 20}, 0, 0, "fetch: the broker offers Fetch v14 to v20, v4 to v13 are known"},
	} {
		got, err := choose(map[int16]versionRange{int16(kmsg.Fetch): c.offered}, int16(kmsg.Fetch), c.most)
		if got != c.want || (c.err == "") != (err == nil) || err != nil && err.Error() != c.err {
			t.Errorf("offered %v, at most %d: v%d, error %v; want v%d, %s", c.offered, c.most, got, err, c.want, c.err)
		}
	}
}

// The versions that a broker offers are requested once per connection.
func TestOffersAreRemembered(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "t"))
	var asked, versions atomic.Int32
	c.ControlKey(int16(kmsg.ApiVersions), func(kmsg.Request) (kmsg.Response, error, bool) {
		asked.Add(1)
		c.KeepControl()
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		versions.Store(int32(req.GetVersion()))
		c.KeepControl()
		return nil, nil, false
	})
	p := newPoller(t, c)
	for range 5 {
		if _, err := p.metadata(testContext(t), AnyBroker, []string{"t"}); err != nil {
			t.Fatal(err)
		}
	}
	// kafka-go asks once for itself on each connection it makes, of which there may be one for its own metadata.
	if n := asked.Load(); n > 4 {
		t.Errorf("the versions were requested %d times in 5 requests, want at most 4", n)
	}
	if v := versions.Load(); v != 12 {
		t.Errorf("metadata was requested in v%d, want v12", v)
	}
}

func TestSkipTags(t *testing.T) {
	for _, c := range []struct {
		body, want []byte
		bad        bool
	}{
		{body: []byte{0, 7}, want: []byte{7}},
		{body: []byte{2, 1, 2, 9, 9, 5, 0, 7}, want: []byte{7}},
		{body: nil, bad: true},
		{body: []byte{1, 1, 200, 1, 3}, bad: true},
		{body: []byte{0x80}, bad: true},
		{body: []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, bad: true},
	} {
		got, err := skipTags(c.body)
		if c.bad != (err != nil) || !bytes.Equal(got, c.want) {
			t.Errorf("%v: got %v, error %v; want %v", c.body, got, err, c.want)
		}
	}
}

func TestExchangeWithUnknownBroker(t *testing.T) {
	e := &exchange{broker: 7}
	_, err := e.Broker(protocol.Cluster{})
	if want := "fetch: broker 7 is not in the cluster's metadata"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
