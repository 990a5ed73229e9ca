// Package enrich writes the events of enriched streams to their output topics, with the features of a service as of
// each event. An Enricher answers the Events of a Batch from the state before the batch, and writes them before the batch is
// applied.
package enrich
