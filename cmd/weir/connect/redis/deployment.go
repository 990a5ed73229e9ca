// Package redisconn opens the Redis that the settings describe: its clients, the store on them, and
// what a process asks of both.
package redisconn

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/config"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// Deployment is the store of the settings' namespace with its connections.
type Deployment struct {
	*redisstore.Namespace
	Client   redis.UniversalClient
	Replicas *redis.ClusterClient // nil where questions are read from masters

	emptied           atomic.Int64 // state keys deleted
	evicted           atomic.Int64 // keys that servers have evicted
	jumps             atomic.Int64 // of servers' clocks
	masters, replicas poolCounters
}

// Open makes the store. It makes no requests yet. If questions are asked, they are read from
// replicas where the settings say so. Masters that no longer answer are logged.
func Open(cfg *config.Config, questions bool, log *slog.Logger) (*Deployment, error) {
	client, err := Client(cfg)
	if err != nil {
		return nil, err
	}
	d := &Deployment{Client: client}
	options := []redisstore.Option{redisstore.NoteMasters(noteMaster(log)), redisstore.NoteEmptied(d.noteEmptied(log)), redisstore.NoteServers(d.noteServer(log))}
	if questions {
		if d.Replicas, err = replicaClient(cfg); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	if d.Replicas != nil {
		options = append(options, redisstore.ReadFromReplicas(d.Replicas, cfg.Redis.MaxStaleness, log))
	}
	store, err := NewStore(cfg, client, options...)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.Namespace = redisstore.NewNamespace(store)
	return d, nil
}

// NewStore returns the store of the settings' namespace on a client.
func NewStore(cfg *config.Config, client redis.UniversalClient, options ...redisstore.Option) (*redisstore.Store, error) {
	key, err := cfg.EntityKey()
	if err != nil {
		return nil, err
	}
	sealKey, err := cfg.SealKey()
	if err != nil {
		return nil, err
	}
	options = append(options, redisstore.HashEntities(key), redisstore.SealWith(sealKey), redisstore.Slack(cfg.Store.ExpirySlack), redisstore.Deadlines(questionTime(cfg), cfg.Redis.ReadTimeout),
		redisstore.CallMutations(cfg.Store.CallMutations), redisstore.AllowEviction(cfg.Redis.AllowEviction))
	return redisstore.New(client, cfg.Namespace, cfg.Shards, options...), nil
}

// questionTime is how long a question waits for one master. If there are several, it waits for a
// hanging one only for a part of its time.
func questionTime(cfg *config.Config) time.Duration {
	if cfg.Redis.Mode == "cluster" {
		return cfg.API.Timeout / 8
	}
	return cfg.API.Timeout
}

// Name is how messages call the store.
func (d *Deployment) Name() string { return "Redis" }

// FromReplicas reports whether questions may read from replicas.
func (d *Deployment) FromReplicas() bool { return d.Replicas != nil }

// Close closes the connections.
func (d *Deployment) Close() error {
	err := d.Client.Close()
	if d.Replicas != nil {
		err = errors.Join(err, d.Replicas.Close())
	}
	return err
}

// noteMaster logs a Redis master that does not answer, or answers again.
func noteMaster(log *slog.Logger) func(address string, err error) {
	return func(address string, err error) {
		if err != nil {
			log.Error("a Redis master does not answer; it is asked again in the background", "address", address, "error", err)
			return
		}
		log.Info("a Redis master answers again", "address", address)
	}
}

// noteEmptied counts and logs state keys that were deleted because their shards had lost their progress.
func (d *Deployment) noteEmptied(log *slog.Logger) func(keys int64) {
	return func(keys int64) {
		d.emptied.Add(keys)
		log.Warn("shards had lost their progress: their state was deleted, and is made again from the log", "keys", keys)
	}
}

// noteServer counts and logs what servers do that deletes state.
func (d *Deployment) noteServer(log *slog.Logger) func(redisstore.ServerNote) {
	return func(n redisstore.ServerNote) {
		switch {
		case n.Policy != "":
			log.Error("Redis may evict keys: set maxmemory-policy noeviction", "address", n.Address, "policy", n.Policy)
		case n.Evicted > 0:
			d.evicted.Add(n.Evicted)
			log.Error("Redis has evicted keys: answers that reach back to before now are INCOMPLETE", "address", n.Address, "keys", n.Evicted)
		case n.Jump > 0:
			d.jumps.Add(1)
			log.Error("the clock of Redis was set ahead: keys expire early, and answers that need them are INCOMPLETE", "address", n.Address, "by", n.Jump.Round(time.Second))
		default:
			d.jumps.Add(1)
			log.Error("the clock of Redis was set back: if it was right before, keys that are written until it is right again expire early by as much",
				"address", n.Address, "by", -n.Jump.Round(time.Second))
		}
	}
}
