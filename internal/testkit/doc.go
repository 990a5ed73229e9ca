// Package testkit and the packages below it give tests real brokers and Redis servers, faults in
// them, and embedded stand-ins.
//
// Exactly-once is a claim about real servers that are killed, so it is tested on real servers. Each
// server comes from the first available source:
//
//   - given: WEIR_TEST_KAFKA=host:port[,host:port], WEIR_TEST_REDIS=host:port
//   - docker: a container, if a Docker daemon answers
//   - local: a process, from redis-server on PATH, and from Java 17 with
//     Kafka's and Ignite's jars, which Maven fetches, see testkit/jars;
//     the first that starts makes an archive of its classes beside them
//
// WEIR_TEST_SOURCE=given|docker|local allows only one source. The test log names each server and
// its source. If no source is available, the test is skipped and says what to install; with
// WEIR_TEST_REQUIRE=1 it fails.
//
// Package kafkatest has brokers, package redistest Redis servers, package ignitetest nodes of Ignite. All tests of a binary share the
// servers that Shared and SharedCluster return, and stay apart by fresh names: kafkatest.CreateTopic
// and [Namespace]. Tests that break a server start their own, with New, NewCluster, NewReplica and the
// like; these are never "given". A package whose tests use the shared servers stops them in its
// TestMain:
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
//
// The Embedded function of both runs a server in the test's process and needs nothing installed.
// Package browser opens a tab of an installed Chromium, package auth makes certificates and tokens.
//
// [Start] runs a program under test as a process, and [Proxy] puts a faulty proxy before a server.
// [FirstPlacement] gives a partition its first progress.
package testkit
