// Package weir is the root of Weir: real-time features for fraud and risk
// decisions, computed from Kafka into Redis and answered over HTTP.
//
// The binary is in cmd/weir; README.md says how to run it and docs/design.md
// how it is built.
package weir

import _ "embed"

// DefinitionsSchema is the JSON Schema of a file of definitions, which the tests of features/definition make.
//
//go:embed docs/schema.json
var DefinitionsSchema []byte
