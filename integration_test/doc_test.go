// Package integration_test tests Weir as a black box: the real binary, in
// processes of its own, between a real broker and a real Redis. Events go in
// on Kafka, answers come out on HTTP, and every answer is compared with a
// plain loop over the same events (internal/model), whatever was killed, cut or
// put back in time meanwhile.
package integration_test
