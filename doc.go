// Package weir is the root of Weir: real-time features for fraud and risk
// decisions, computed from Kafka into Redis and answered over HTTP.
//
// The binary is in cmd/weir; README.md says how to run it and docs/design.md
// how it is built.
package weir
