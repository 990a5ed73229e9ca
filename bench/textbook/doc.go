// Package textbook computes the shipped features as hand-written feature layers do: with a group of
// kafka-go Readers, encoding/json, and pipelines with one command for each feature and event, on a
// key with an expiry for each tile. Weir is measured against it, and it is meant to be a good one
// of its kind:
//
//   - a pipeline holds hundreds of events, and offsets are committed after it;
//   - keys expire at the end of their window (EXPIREAT), not by their last write,
//     so the memory measured is that of live state only;
//   - averages keep sum and count in one hash with one expiry, and maxima are in
//     a sorted set of one member (ZADD GT), which needs neither a script nor a read.
//
// It counts events again after a crash between a pipeline and its commit, adds money as floats, and
// does not handle late events.
package textbook
