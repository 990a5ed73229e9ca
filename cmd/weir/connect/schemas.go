package connect

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/operate/doctor"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/pipeline/schemas"
)

// Schemas returns a cache of the schemas in the settings' registry, for a command. The caller must close it.
func Schemas(cfg *config.Config) (*schemas.Cache, error) {
	client, err := cfg.SchemaRegistry()
	if err != nil {
		return nil, err
	}
	return schemas.New(schemas.Config{
		Client: client, Timeout: cfg.Registry.Timeout, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}), nil
}

// Log configures reading the log, without a processor. The caller must call close once it reads no more.
func Log(cfg *config.Config) (log scan.Config, close func(), err error) {
	transport, err := cfg.KafkaTransport()
	if err != nil {
		return log, nil, err
	}
	cache, err := Schemas(cfg)
	if err != nil {
		return log, nil, err
	}
	log = scan.Config{Transport: transport, Bootstrap: kafka.TCP(cfg.Kafka.Brokers...), Isolation: Isolation(cfg), Schemas: cache}
	return log, func() { cache.Close(); transport.CloseIdleConnections() }, nil
}

// CheckSchemas looks up in the settings' registry what the definitions read and write. The error is
// about the settings.
func CheckSchemas(ctx context.Context, cfg *config.Config, registry *features.Registry) (doctor.Findings, error) {
	client, err := cfg.SchemaRegistry()
	if err != nil {
		return nil, err
	}
	return doctor.Schemas(ctx, doctor.SchemaRegistry{Client: client, URL: cfg.Registry.URL, Registry: registry, Files: cfg.Features}), nil
}
