package connect

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/pipeline/schemas"
)

// Schemas has the schemas of the settings' registry, for a command; Close ends it.
func Schemas(cfg *config.Config) (*schemas.Cache, error) {
	client, err := cfg.SchemaRegistry()
	if err != nil {
		return nil, err
	}
	return schemas.New(schemas.Config{
		Client: client, Timeout: cfg.Registry.Timeout, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}), nil
}
