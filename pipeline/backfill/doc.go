// Package backfill fills what new features need with the records that were applied before
// there was anybody to feed it, while live events flow. What is left to be filled of a
// partition stands in the store, by shard, and moves with what is written: so a backfill may
// be killed at any moment, be done by two at once, or find the store gone back in time, and
// each record counts once. See docs/design.md, "How new features are filled".
package backfill
