// Package features is the feature language: definitions in YAML become a
// Registry, which says what every event writes (see Mapper) and what every
// question reads (see Feature).
package features
