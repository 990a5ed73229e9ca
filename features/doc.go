// Package features implements the feature language. Definitions compile to a Registry, which knows what each event
// writes (see Mapper) and what each feature reads. Package definition reads the definitions, package record decodes the
// events, and package query answers questions.
package features
