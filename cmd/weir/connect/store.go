package connect

import (
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/config"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// NewStore is the store of the settings' namespace.
func NewStore(cfg *config.Config, client redis.UniversalClient, options ...redisstore.Option) (*redisstore.Store, error) {
	key, err := cfg.EntityKey()
	if err != nil {
		return nil, err
	}
	// If there are several masters, a question to all waits for a hanging one only for a part of
	// its time.
	question := cfg.API.Timeout
	if cfg.Redis.Mode == "cluster" {
		question /= 8
	}
	options = append(options, redisstore.HashEntities(key), redisstore.Slack(cfg.Store.ExpirySlack), redisstore.Deadlines(question, cfg.Redis.ReadTimeout))
	return redisstore.New(client, cfg.Namespace, cfg.Shards, options...), nil
}

// OpenReplicas makes the client of the replicas that questions are read from, and the store's
// option to read there; nil if everything is read from masters.
func OpenReplicas(cfg *config.Config, log *slog.Logger) (client *redis.ClusterClient, reading []redisstore.Option, err error) {
	client, err = cfg.RedisReplicas()
	if err != nil || client == nil {
		return nil, nil, err
	}
	return client, []redisstore.Option{redisstore.ReadFromReplicas(client, cfg.Redis.MaxStaleness, log)}, nil
}
