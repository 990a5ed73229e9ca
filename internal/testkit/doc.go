// Package testkit, with the packages below it, gives tests real brokers and Redis
// servers, their faults, and embedded stand-ins.
//
// Exactly-once is a claim about what real servers do when they are killed, so
// it is tested on real servers. Each comes from the first of these that can
// be had:
//
//   - given: WEIR_TEST_KAFKA=host:port[,host:port], WEIR_TEST_REDIS=host:port
//   - docker: a container, when a Docker daemon answers
//   - local: a process, from redis-server on PATH, and from Java 17 with
//     Kafka's jars, which kafkatest/install.sh fetches with Maven
//
// WEIR_TEST_SOURCE=given|docker|local allows that one only. Each server is
// named in the test log with where it came from. When none can be had the
// test is skipped and says what to install; with WEIR_TEST_REQUIRE=1 it fails.
//
// Package kafkatest has brokers, package redistest Redis servers. Those that their
// Shared returns are shared by all tests of a binary, which keep apart by fresh names:
// kafkatest.CreateTopic and [Namespace]. Tests that break a server start their own, with
// New, NewCluster, NewReplica and the like; these are never "given". A package whose
// tests use the shared servers ends them in its TestMain:
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
//
// The Embedded of both run in the test's process and need nothing installed. Package
// browser opens a tab of an installed Chromium, package auth makes certificates and
// tokens.
//
// [Start] runs a program under test as a process, and [Proxy] stands between
// two of all these.
package testkit
