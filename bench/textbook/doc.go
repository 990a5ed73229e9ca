// Package textbook keeps the shipped features as hand-made feature layers do:
// a group of kafka-go Readers, encoding/json, and for each feature and event one
// command on a key of its own for each tile, with an expiry, in pipelines. It
// is what Weir is measured against, and is meant to be a good one of its kind:
//
//   - a pipeline carries hundreds of events, and offsets are committed after it;
//   - keys expire by the end of their window (EXPIREAT), not by when they were
//     last written, so the memory measured is that of live state only;
//   - averages keep sum and count in one hash with one expiry, and greatest
//     values stand in a sorted set of one member (ZADD GT), which needs neither a
//     script nor a read.
//
// It counts events again after a crash between a pipeline and its commit, adds
// money as floats, and knows no late events.
package textbook
