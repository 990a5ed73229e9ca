// Package enrich writes the events of streams with enrich to their topics, with the features of a service as of each
// event: an Enricher answers the Events of a Batch from the state before it, and writes them before it is applied.
package enrich
