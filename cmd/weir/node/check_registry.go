package node

import (
	"context"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/operate/doctor"
)

// checkRegistry looks up in the Schema Registry what the definitions read.
func checkRegistry(ctx context.Context, list *checkList, cfg *config.Config, registry *features.Registry) {
	client, err := cfg.SchemaRegistry()
	if err != nil {
		list.fail("schema registry", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Registry.Timeout)
	defer cancel()
	list.take(doctor.Schemas(ctx, doctor.SchemaRegistry{Client: client, URL: cfg.Registry.URL, Registry: registry, Files: cfg.Features}))
}
