package config_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/internal/testkit/auth"
)

// authority returns a server's TLS configuration and a file with its CA certificate, for the name
// "example.com".
func authority(t *testing.T) (server *tls.Config, ca string) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: s.TLS.Certificates}, ca
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestKafkaOverTLSWithLogin(t *testing.T) {
	serverTLS, ca := authority(t)
	for _, mechanism := range []struct{ setting, server string }{
		{"plain", "PLAIN"}, {"scram-sha-256", "SCRAM-SHA-256"}, {"scram-sha-512", "SCRAM-SHA-512"},
	} {
		t.Run(mechanism.setting, func(t *testing.T) {
			broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "events"),
				kfake.TLS(serverTLS), kfake.EnableSASL(), kfake.Superuser(mechanism.server, "weir", "hunter2"))
			if err != nil {
				t.Fatal(err)
			}
			defer broker.Close()
			c := config.Default()
			c.Kafka.Brokers = broker.ListenAddrs()
			c.Kafka.TLS = config.TLS{Enabled: true, CA: ca, ServerName: "example.com"}
			c.Kafka.SASL = config.SASL{Mechanism: mechanism.setting, Username: "weir", Password: "hunter2"}

			if n, err := partitions(t, c); n != 3 || err != nil {
				t.Errorf("the transport finds %d partitions, error %v; want 3", n, err)
			}
			if err := pingAsProducer(t, c); err != nil {
				t.Error("the producer is refused:", err)
			}

			c.Kafka.SASL.Password = "wrong"
			if err := pingAsProducer(t, c); err == nil {
				t.Error("a producer with a wrong password is accepted")
			}
			if _, err := partitions(t, c); err == nil {
				t.Error("a transport with a wrong password is accepted")
			}
		})
	}
}

func pingAsProducer(t *testing.T, c *config.Config) error {
	t.Helper()
	options, err := c.KafkaProducer()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(append(options, kgo.RequestRetries(0))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	return client.Ping(within(t))
}

func partitions(t *testing.T, c *config.Config) (int, error) {
	t.Helper()
	transport, err := c.KafkaTransport()
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(c.Kafka.Brokers...), Transport: transport, Timeout: 10 * time.Second}
	found, err := client.Metadata(within(t), &kafka.MetadataRequest{Topics: []string{"events"}})
	if err != nil {
		return 0, err
	}
	return len(found.Topics[0].Partitions), nil
}

// Brokers log the client's name, and apply quotas by it.
func TestNameAtTheBrokers(t *testing.T) {
	c := config.Default()
	c.Kafka.ClientID = "payments"
	transport, err := c.KafkaTransport()
	if err != nil {
		t.Fatal(err)
	}
	options, err := c.KafkaProducer()
	if err != nil {
		t.Fatal(err)
	}
	producer, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if name := producer.OptValue(kgo.ClientID); transport.ClientID != "payments" || fmt.Sprint(name) != "payments" {
		t.Errorf("the transport is %q, the producer %v; want payments", transport.ClientID, name)
	}
}

// A login to Redis uses the user and the password that is in the file at that time.
func TestRedisPasswordOfAFile(t *testing.T) {
	c := config.Default()
	if c.Redis.Credentials() != nil {
		t.Error("without a file there is a source of changing credentials")
	}
	file := filepath.Join(t.TempDir(), "password")
	c.Redis.Username, c.Redis.PasswordFile = "weir", file
	login := c.Redis.Credentials()
	for _, want := range []string{"old", "new"} {
		rewrite(t, file, want+"\n")
		if user, password, err := login(t.Context()); user != "weir" || password != want || err != nil {
			t.Errorf("got user %s with password %q, error %v; want weir with %q", user, password, err, want)
		}
	}
}

// A connection shows the certificate that is in the file at that time. One that the server does not ask for is not shown.
func TestRenewedCertificate(t *testing.T) {
	ours := auth.NewAuthority(t)
	pair, err := tls.LoadX509KeyPair(ours.Issue("server"))
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Redis.TLS = config.TLS{Enabled: true, CA: ours.CA, ServerName: "localhost"}
	c.Redis.TLS.Cert, c.Redis.TLS.Key = ours.Issue("client")
	client, err := c.RedisTLS()
	if err != nil {
		t.Fatal(err)
	}
	shown := func(wanted *auth.Authority) (serials []string) {
		t.Helper()
		clients, err := credentials.Authorities(wanted.CA)
		if err != nil {
			t.Fatal(err)
		}
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients})
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		server := make(chan error, 1)
		go func() {
			conn, err := listener.Accept()
			if err == nil {
				defer conn.Close()
				err = conn.(*tls.Conn).Handshake()
				for _, c := range conn.(*tls.Conn).ConnectionState().PeerCertificates {
					serials = append(serials, c.SerialNumber.String())
				}
			}
			server <- err
		}()
		conn, err := tls.Dial("tcp", listener.Addr().String(), client.Clone())
		if err = errors.Join(err, <-server); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		return serials
	}
	t.Run("another authority", func(t *testing.T) { // with another name
		if got := shown(auth.NewAuthority(t)); len(got) > 0 {
			t.Errorf("a server that wants its certificate is shown %v", got)
		}
	})
	before := shown(ours)
	ours.Issue("client") // replaces the files
	if after := shown(ours); len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		t.Errorf("certificates %v and, renewed, %v are shown", before, after)
	}
}

func TestUnusableSecurity(t *testing.T) {
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(notPEM, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, b := range []struct {
		tls  config.TLS
		want string
	}{
		{config.TLS{Enabled: true, CA: "/none.pem"}, "tls.ca: open /none.pem: no such file or directory"},
		{config.TLS{Enabled: true, CA: notPEM}, "tls.ca: " + notPEM + " holds no certificate in PEM form"},
		{config.TLS{Enabled: true, Cert: "/none.pem", Key: "/none.key"}, "tls.cert: open /none.pem: no such file or directory"},
	} {
		c := config.Default()
		c.Kafka.TLS, c.Redis.TLS = b.tls, b.tls
		_, transportErr := c.KafkaTransport()
		_, producerErr := c.KafkaProducer()
		_, redisErr := c.RedisTLS()
		for got, want := range map[error]string{producerErr: "kafka." + b.want, transportErr: "kafka." + b.want, redisErr: "redis." + b.want} {
			if fmt.Sprint(got) != want {
				t.Errorf("\ngot  %v\nwant %s", got, want)
			}
		}
	}
	c := config.Default()
	c.Kafka.SASL = config.SASL{Mechanism: "oauthbearer", OAuth: config.OAuth{TokenURL: "https://issuer/token", CA: "/none.pem"}}
	_, transportErr := c.KafkaTransport()
	_, producerErr := c.KafkaProducer()
	for _, got := range []error{transportErr, producerErr} {
		if want := "kafka.sasl.oauth.ca: open /none.pem: no such file or directory"; fmt.Sprint(got) != want {
			t.Errorf("\ngot  %v\nwant %s", got, want)
		}
	}
}

func TestEntityKey(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	short := file("short", "secret\n")
	for path, want := range map[string]string{
		"":                                 "[], <nil>",
		file("good", "0123456789abcdef\n"): "[48 49 50 51 52 53 54 55 56 57 97 98 99 100 101 102], <nil>",
		"/none.key":                        "[], store.hash_entities.key_file: open /none.key: no such file or directory",
		short: "[], store.hash_entities.key_file: " + short +
			" holds 6 bytes, which can be guessed: it needs at least 16, such as from `openssl rand -base64 32`",
	} {
		c := config.Default()
		c.Store.HashEntities.KeyFile = path
		key, err := c.EntityKey()
		if got := fmt.Sprintf("%v, %v", key, err); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", path, got, want)
		}
	}
}
