// Package backfill fills new features from records that were applied before the features were defined, while live
// events flow. The store keeps, by shard, what is left to fill of a partition, and moves it in the script that writes
// the state. So each record counts once, even if a backfill is killed, two of them run at once, or the store goes back
// in time. Events that the log no longer has are filled from files in the same way, row by row. See
// docs/definition-changes.md, "How new features are filled".
package backfill
