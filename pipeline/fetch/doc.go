// Package fetch reads records from Kafka: it long-polls the leaders of a set of partitions and decodes what they send.
//
// # How a fetch works
//
// A [Poller] keeps the position of each partition that was added. One goroutine looks up who leads the partitions that
// have no leader; one goroutine for each leader sends fetch requests, each for all of that leader's partitions, and
// waits up to MaxWait for the first record. A leader that had no more records is not asked again for the Pace. A
// position advances as soon as a response has arrived, by the headers of the record batches alone, so the next long
// poll is under way while the caller works. [Poller.Poll] returns one [PartitionData] at a time, undecoded. A [Decoder]
// turns it into records, on the caller's goroutine, and knows at the end at which offset to continue:
//
//	d.Reset(part)
//	for {
//		ok, err := d.Next(&record)
//		…
//	}
//	progress = d.NextOffset()
//	part.Release()
//
// A leader is asked for more only when Poll has taken what it sent, so a slow caller bounds memory rather than filling
// it. [Poller.Seek] drops everything of the partition that was fetched before it, including requests under way.
//
// There are three kinds of errors. A position outside of the log is reported by Poll as an [OffsetOutOfRangeError],
// and a batch that cannot be decoded by Next as a [CorruptError]: the caller decides about both, and may seek.
// Everything else is waited out with backoff: brokers that are unavailable, leaders that move, topics that do not exist yet.
// [Poller.Troubles] lists the partitions that are not fetched, and since when.
//
// # Why not a library
//
// The connections, with TLS, SASL, versions and pooling, are those of kafka-go's Transport. Its readers are not used,
// because they are wrong where counts must be exact: they deliver the records of aborted transactions and the
// transaction markers themselves, check no checksum on some paths, go back to the start at a batch that compaction
// emptied, and never get past a transaction marker at the end of the log. A request that implements kafka-go's
// protocol.RawExchanger is handed the connection and does its own writing and reading; kmsg encodes it. The Transport
// gives a connection to one request at a time, so a long poll does not delay other requests, which use other
// connections.
//
// # What a partition's data looks like
//
// It is a run of record batches (format v2, the only one since Kafka 0.11; older segments are refused by name). A
// broker sends whole batches, so the first may begin before the position, and the last may be cut by the size limit. A
// batch covers the offsets from its base to base + last offset delta, although compaction may have removed any of its
// records, the last ones and all of them included; that range, not the records, says where the next batch begins. A
// control batch holds the marker that commits or aborts a producer's transaction. Under read-committed isolation the
// broker sends nothing beyond the first open transaction. With the data it sends a list of aborted transactions, each
// with its producer and first offset: from there to the producer's ABORT marker its transactional batches are skipped.
package fetch
