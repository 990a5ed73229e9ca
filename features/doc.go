// Package features is the feature language: definitions compile to a Registry,
// which says what every event writes (see Mapper) and what every feature needs of
// state. Package definition reads the definitions, record the events, and query
// answers questions.
package features
