package redisconn

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weir-stream/weir/config"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// Client makes the client of the server, the Sentinels or the cluster; it
// connects when first used. The error names the setting that TLS or a login
// cannot work with.
func Client(cfg *config.Config) (redis.UniversalClient, error) {
	options, err := Options(cfg)
	if err != nil {
		return nil, err
	}
	switch cfg.Redis.Mode {
	case "sentinel":
		client := redis.NewFailoverClient(options.Failover())
		client.Options().Addr = cfg.Redis.MasterName // for messages; the library calls each FailoverClient
		return client, nil
	case "cluster":
		client := redis.NewClusterClient(options.Cluster())
		redisstore.FollowSlots(client)
		return client, nil
	default:
		return redis.NewClient(options.Simple()), nil
	}
}

// replicaClient makes the client that knows the replicas of each master, as a cluster client does
// in every mode; nil if everything is read from masters. The error is that of Client.
func replicaClient(cfg *config.Config) (*redis.ClusterClient, error) {
	if cfg.Redis.ReadFrom != "replica" {
		return nil, nil
	}
	options, err := Options(cfg)
	if err != nil {
		return nil, err
	}
	options.ReadOnly = true
	// After a replica that does not answer, a question still needs time to ask the master.
	const part = 4
	options.DialTimeout, options.DialerRetries = options.DialTimeout/part, 1
	options.ReadTimeout, options.WriteTimeout = options.ReadTimeout/part, options.WriteTimeout/part
	switch cfg.Redis.Mode {
	case "sentinel":
		return redis.NewFailoverClusterClient(options.Failover()), nil
	case "cluster":
		return redis.NewClusterClient(options.Cluster()), nil
	default:
		return redis.NewClusterClient(singleWithReplicas(&cfg.Redis, options.Cluster())), nil
	}
}

// KnownReplicas returns how many replicas the settings' server, or their Sentinels, know of the master, connected or not.
// It is 0 for a cluster, whose masters know that themselves.
func KnownReplicas(ctx context.Context, cfg *config.Config) (int, error) {
	switch cfg.Redis.Mode {
	case "single":
		return len(cfg.Redis.Replicas), nil
	case "cluster":
		return 0, nil
	}
	options, err := Options(cfg)
	if err != nil {
		return 0, err
	}
	var failure error
	for _, address := range cfg.Redis.Addresses {
		of := options.Simple()
		of.Addr, of.Username, of.Password, of.DB = address, options.SentinelUsername, options.SentinelPassword, 0
		of.CredentialsProviderContext, of.StreamingCredentialsProvider = nil, nil
		sentinel := redis.NewSentinelClient(of)
		replicas, err := sentinel.Replicas(ctx, cfg.Redis.MasterName).Result()
		failure = errors.Join(failure, err, sentinel.Close())
		if err == nil {
			return len(replicas), nil
		}
	}
	return 0, failure
}

// singleWithReplicas makes a cluster of one master and its replicas.
func singleWithReplicas(r *config.Redis, options *redis.ClusterOptions) *redis.ClusterOptions {
	const lastSlot = 16383
	slots := redis.ClusterSlot{End: lastSlot}
	for _, address := range append(r.Addresses[:1:1], r.Replicas...) {
		slots.Nodes = append(slots.Nodes, redis.ClusterNode{Addr: address})
	}
	options.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) { return []redis.ClusterSlot{slots}, nil }
	if db := r.DB; db != 0 { // clusters do not have databases
		options.OnConnect = func(ctx context.Context, connection *redis.Conn) error { return connection.Select(ctx, db).Err() }
	}
	return options
}

// Options returns the options of all clients.
func Options(cfg *config.Config) (*redis.UniversalOptions, error) {
	r := &cfg.Redis
	encryption, err := cfg.RedisTLS()
	if err != nil {
		return nil, err
	}
	tokens, err := r.Tokens()
	if err != nil {
		return nil, err
	}
	options := &redis.UniversalOptions{
		Addrs:      r.Addresses,
		ClientName: "weir",
		MasterName: r.MasterName,
		Username:   r.Username,
		Password:   string(r.Password),
		// Read at each login, so that a changed password needs no restart.
		CredentialsProviderContext: r.Credentials(),
		SentinelUsername:           r.SentinelUsername,
		SentinelPassword:           string(r.SentinelPassword),
		DB:                         r.DB,
		PoolSize:                   r.PoolSize,
		DialTimeout:                r.DialTimeout,
		ReadTimeout:                r.ReadTimeout,
		WriteTimeout:               r.WriteTimeout,
		TLSConfig:                  encryption,
		// A question ends when its caller's time is over.
		ContextTimeoutEnabled: true,
		// Maintenance notifications are a feature of Redis' own cloud; elsewhere requesting them costs each connection
		// an error.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if tokens != nil {
		options.StreamingCredentialsProvider = newRenewal(r.Username, tokens)
	}
	if r.ElastiCache.Cache != "" {
		// ElastiCache ends a connection 12 hours after such a login, in the middle of a request if there is one. So
		// connections are replaced before that, and not all at the same time.
		options.ConnMaxLifetime, options.ConnMaxLifetimeJitter = 11*time.Hour, 30*time.Minute
	}
	return options, nil
}
