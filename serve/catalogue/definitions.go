package catalogue

import (
	"github.com/weir-stream/weir/features"
)

// Definitions is the answer of GET /v1/definitions: the texts from which definition.LoadFiles compiles the definitions
// of that version.
type Definitions struct {
	Version string `json:"version"`
	features.Files
}

// DefinitionsOf returns the definitions of a registry.
func DefinitionsOf(r *features.Registry) Definitions {
	d := Definitions{Version: r.Version(), Files: r.Files}
	if d.Definitions == nil {
		d.Definitions = []features.File{}
	}
	if d.Schemas == nil {
		d.Schemas = []features.File{}
	}
	return d
}
