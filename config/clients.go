package config

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/credentials"
)

// dialTimeout bounds the connection attempt to a broker.
const dialTimeout = 10 * time.Second

// KafkaTransport makes the connection pool for requests to the brokers. The error names the setting
// that TLS or SASL cannot work with.
func (c *Config) KafkaTransport() (*kafka.Transport, error) {
	encryption, err := c.Kafka.TLS.config("kafka.tls")
	if err != nil {
		return nil, err
	}
	login, err := c.Kafka.SASL.login()
	if err != nil {
		return nil, err
	}
	transport := &kafka.Transport{
		Dial:        (&net.Dialer{Timeout: dialTimeout}).DialContext,
		DialTimeout: dialTimeout,
		ClientID:    c.Kafka.ClientID,
		// How soon a leader on an unknown broker is found.
		MetadataTTL: 2 * time.Second,
		TLS:         encryption,
	}
	if login != nil {
		transport.SASL = mechanism{login}
		dial := transport.Dial
		transport.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &loginConn{Conn: conn, within: dialTimeout}, nil
		}
	}
	return transport, nil
}

// loginConn bounds the time of the login at a broker. kafka-go takes the deadline off a new connection before it logs in,
// so it would wait for ever for a broker that hangs then. While it waits so for its first broker, it asks no other one.
type loginConn struct {
	net.Conn
	within time.Duration
	begun  bool // the login; a connection is used by one goroutine at a time
}

// SetDeadline sets the deadline. The login follows when it is first taken off; each request sets one of its own.
func (c *loginConn) SetDeadline(t time.Time) error {
	if t.IsZero() && !c.begun {
		c.begun, t = true, time.Now().Add(c.within)
	}
	return c.Conn.SetDeadline(t)
}

// KafkaProducer returns the options of a client that writes transactions. The error is that of KafkaTransport.
func (c *Config) KafkaProducer() ([]kgo.Opt, error) {
	encryption, err := c.Kafka.TLS.config("kafka.tls")
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{kgo.SeedBrokers(c.Kafka.Brokers...), kgo.ClientID(c.Kafka.ClientID), kgo.DialTimeout(dialTimeout)}
	if encryption != nil {
		options = append(options, kgo.DialTLSConfig(encryption))
	}
	login, err := c.Kafka.SASL.login()
	if err != nil {
		return nil, err
	}
	if login != nil {
		options = append(options, kgo.SASL(login))
	}
	return options, nil
}

// config returns the TLS configuration, nil where it is not enabled. The error begins with the key of the setting that
// cannot be used.
func (t TLS) config(key string) (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify,
	}
	if t.CA != "" {
		var err error
		if c.RootCAs, err = credentials.Authorities(t.CA); err != nil {
			return nil, fmt.Errorf("%s.ca: %w", key, err)
		}
	}
	if t.Cert != "" {
		if _, err := t.pair(key); err != nil {
			return nil, err
		}
		// Read for each connection, so that a renewed certificate needs no restart.
		c.GetClientCertificate = func(wanted *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := t.pair(key)
			if err == nil && wanted.SupportsCertificate(pair) != nil {
				return new(tls.Certificate), nil // none, as for a server that asks for another authority's
			}
			return pair, err
		}
	}
	return c, nil
}

// pair reads the certificate to show.
func (t TLS) pair(key string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("%s.cert: %w", key, err)
	}
	return &pair, nil
}

// RedisTLS returns the TLS configuration of the connections to Redis, nil where it is not enabled. The error names the
// setting that cannot be used.
func (c *Config) RedisTLS() (*tls.Config, error) { return c.Redis.TLS.config("redis.tls") }

// IgniteTLS returns the TLS configuration of the connections to Ignite, nil where it is not enabled. The error names the setting
// that cannot be used.
func (c *Config) IgniteTLS() (*tls.Config, error) { return c.Ignite.TLS.config("ignite.tls") }

// Credentials returns the source of each login's user and password if the password may change: a token for Amazon
// ElastiCache, or the content of the password's file; nil if neither is configured.
func (r *Redis) Credentials() func(context.Context) (user, password string, err error) {
	if r.ElastiCache.Cache != "" {
		return r.ElastiCache.login(r.Username, time.Now)
	}
	if r.PasswordFile == "" {
		return nil
	}
	return func(context.Context) (string, string, error) {
		password, err := secret("redis.password_file", r.PasswordFile, "")
		return r.Username, password, err
	}
}

// EntityKey returns the secret that hashes entities' values, nil if they are not hashed.
func (c *Config) EntityKey() ([]byte, error) {
	return key("store.hash_entities.key_file", c.Store.HashEntities.KeyFile)
}

// SealKey returns the secret that seals what is written to topics, nil if it is the namespace's own.
func (c *Config) SealKey() ([]byte, error) { return key("store.seal.key_file", c.Store.Seal.KeyFile) }

// key reads the secret in a file that a setting names; nil if it names none.
func key(setting, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	const least = 16
	if key = bytes.TrimRight(key, "\r\n"); len(key) < least {
		return nil, fmt.Errorf("%s: %s holds %d bytes, which can be guessed: it needs at least %d, such as from `openssl rand -base64 32`",
			setting, path, len(key), least)
	}
	return key, nil
}
