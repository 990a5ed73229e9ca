// Package pipeline carries events from Kafka into the store, each counted once.
//
// A Processor is a member of a consumer group. It shares out to workers what the
// group gives it; when that changes, only the partitions that come or go are touched.
// A worker is two goroutines and two
// batches that go round between them:
//
//	fetch.Poller -> decode -> Mapper.Map -> batch ==> dead letters -> enriched events -> Writer.Apply
//	                 (the mapping goroutine)          (the applying goroutine)
//	       ^                                                |
//	       +------- the batch comes back: progress, -------+
//	                rewinds, offsets to commit
//
// While there is little to do one worker carries all partitions, so that what comes at
// once is one fetch and one batch; see balance.go.
//
// While one batch is applied the other one grows, so batches are small when
// there is little to do and large when there is much.
//
// How far a partition was applied stands in the store, with the state, for each
// shard. The offsets committed to Kafka follow it about once a second where they move, and only
// serve those who look at the lag. A worker that starts on a partition, or is
// told that the store went back in time, reads it from the lowest progress of
// all shards; the writer passes over what a shard has already.
//
// Definitions may change at any time, see Processor.Reload. Progress stands
// under the version of the plan that is applied, so a worker claims a partition
// before it reads it, and one with other definitions that still holds a batch of
// it applies that to nothing.
package pipeline
