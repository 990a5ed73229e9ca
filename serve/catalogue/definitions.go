package catalogue

import (
	"github.com/weir-stream/weir/features"
)

// Definitions is the answer of GET /v1/definitions: the texts that definition.LoadSources compiles
// to the definitions of that version.
type Definitions struct {
	Version string `json:"version"`
	features.Sources
}

// DefinitionsOf are the definitions of a registry.
func DefinitionsOf(r *features.Registry) Definitions {
	d := Definitions{Version: r.Version(), Sources: r.Sources}
	if d.Definitions == nil {
		d.Definitions = []features.Source{}
	}
	if d.Schemas == nil {
		d.Schemas = []features.Source{}
	}
	return d
}
