// Package pipeline applies events from Kafka to the store, each exactly once.
//
// A Processor is a member of a consumer group. It distributes the partitions that the
// group assigns to it among workers; when the assignment changes, only the partitions that
// come or go are touched. A worker is two goroutines with two batches that pass between
// them:
//
//	fetch.Poller -> decode -> Mapper.Map -> batch ==> dead letters -> enriched events -> Writer.Apply
//	                 (the mapping goroutine)          (the applying goroutine)
//	       ^                                                |
//	       +------- the batch comes back: progress, -------+
//	                rewinds, offsets to commit
//
// While the load is low one worker processes all partitions, so that records that arrive
// together make one fetch and one batch; see balance.go.
//
// While one batch is applied the other one grows, so batches are small under low load and
// large under high load.
//
// The progress of a partition is stored with the state, for each shard. Offsets are
// committed to Kafka about once a second where they have moved, for lag tools only. A worker
// that starts on a partition, or learns that the store went back in time, reads the
// partition from the lowest progress of all shards; the writer skips what a shard has
// already applied.
//
// If events are enriched, partitions that catch up are read in step, see package align and held.go.
//
// What a worker does with each of its partitions is its phase; assignedPartition has the picture.
//
// Definitions may change at any time, see Processor.Reload. Progress is stored under the
// version of the plan that is applied. A worker claims a partition before it reads it, and a
// worker with other definitions that still holds a batch of the partition then applies
// nothing.
package pipeline
