package config

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
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
		// How soon a leader that moved to an unknown broker is found.
		MetadataTTL: 2 * time.Second,
		TLS:         encryption,
	}
	if login != nil {
		transport.SASL = mechanism{login}
	}
	return transport, nil
}

// KafkaProducer are the options of a client that writes transactions. The
// error is that of KafkaTransport.
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

// config is the TLS configuration, nil where it is not enabled. The error
// begins with the key of the setting that cannot be used.
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
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("%s.cert: %w", key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// RedisClient makes the client of the server, the Sentinels or the cluster; it
// connects when first used. The error names the setting that TLS cannot work
// with.
func (c *Config) RedisClient() (redis.UniversalClient, error) {
	options, err := c.RedisOptions()
	if err != nil {
		return nil, err
	}
	switch c.Redis.Mode {
	case "sentinel":
		return redis.NewFailoverClient(options.Failover()), nil
	case "cluster":
		return redis.NewClusterClient(options.Cluster()), nil
	default:
		return redis.NewClient(options.Simple()), nil
	}
}

// RedisReplicas makes the client that knows the replicas of each master, as a cluster client does
// in every mode; nil if everything is read from masters. The error is that of RedisClient.
func (c *Config) RedisReplicas() (*redis.ClusterClient, error) {
	if c.Redis.ReadFrom != "replica" {
		return nil, nil
	}
	options, err := c.RedisOptions()
	if err != nil {
		return nil, err
	}
	options.ReadOnly = true
	// After a replica that does not answer, a question still has to ask the master.
	const part = 4
	options.DialTimeout, options.DialerRetries = options.DialTimeout/part, 1
	options.ReadTimeout, options.WriteTimeout = options.ReadTimeout/part, options.WriteTimeout/part
	switch c.Redis.Mode {
	case "sentinel":
		return redis.NewFailoverClusterClient(options.Failover()), nil
	case "cluster":
		return redis.NewClusterClient(options.Cluster()), nil
	default:
		return redis.NewClusterClient(c.singleWithReplicas(options.Cluster())), nil
	}
}

// singleWithReplicas makes a cluster of one master and its replicas.
func (c *Config) singleWithReplicas(options *redis.ClusterOptions) *redis.ClusterOptions {
	const lastSlot = 16383
	slots := redis.ClusterSlot{End: lastSlot}
	for _, address := range append(c.Redis.Addresses[:1:1], c.Redis.Replicas...) {
		slots.Nodes = append(slots.Nodes, redis.ClusterNode{Addr: address})
	}
	options.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) { return []redis.ClusterSlot{slots}, nil }
	if db := c.Redis.DB; db != 0 { // clusters do not have databases
		options.OnConnect = func(ctx context.Context, connection *redis.Conn) error { return connection.Select(ctx, db).Err() }
	}
	return options
}

// RedisOptions are the options of RedisClient.
func (c *Config) RedisOptions() (*redis.UniversalOptions, error) {
	r := &c.Redis
	encryption, err := r.TLS.config("redis.tls")
	if err != nil {
		return nil, err
	}
	return &redis.UniversalOptions{
		Addrs:      r.Addresses,
		ClientName: "weir",
		MasterName: r.MasterName,
		Username:   r.Username,
		Password:   string(r.Password),
		// At each login, so that a password that changes needs no restart.
		CredentialsProviderContext: r.credentials(),
		SentinelUsername:           r.SentinelUsername,
		SentinelPassword:           string(r.SentinelPassword),
		DB:                         r.DB,
		PoolSize:                   r.PoolSize,
		DialTimeout:                r.DialTimeout,
		ReadTimeout:                r.ReadTimeout,
		WriteTimeout:               r.WriteTimeout,
		TLSConfig:                  encryption,
		// A question is given up when its caller's time is over.
		ContextTimeoutEnabled: true,
		// Announced maintenance is a feature of Redis's own cloud; elsewhere
		// asking for it costs each connection an error.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}, nil
}

// credentials reads the user's password from its file again; nil if no file is configured.
func (r *Redis) credentials() func(context.Context) (user, password string, err error) {
	if r.PasswordFile == "" {
		return nil
	}
	return func(context.Context) (string, string, error) {
		password, err := secret("redis.password_file", r.PasswordFile, "")
		return r.Username, password, err
	}
}

// EntityKey is the secret that hashes entities' values, nil if they are not hashed.
func (c *Config) EntityKey() ([]byte, error) {
	path := c.Store.HashEntities.KeyFile
	if path == "" {
		return nil, nil
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("store.hash_entities.key_file: %w", err)
	}
	const least = 16
	if key = bytes.TrimRight(key, "\r\n"); len(key) < least {
		return nil, fmt.Errorf("store.hash_entities.key_file: %s holds %d bytes, which can be guessed: it needs at least %d, such as from `openssl rand -base64 32`",
			path, len(key), least)
	}
	return key, nil
}
