// Package integration_test tests Weir as a black box: the real binary runs in processes of its own
// between a real broker and a real Redis. Events go in on Kafka and answers come out over HTTP,
// while servers are killed, isolated or restored from old copies. Every answer is compared with a
// plain loop over the same events (internal/model).
package integration_test
