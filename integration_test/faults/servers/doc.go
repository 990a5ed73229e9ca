// Package servers starts the servers of fault trials and injects faults into them: a Kafka broker
// behind a proxy ([Broker]), Redis as one server, with a Sentinel or as a cluster ([Redis]), and
// processes of Weir ([Process]). They run on this machine and belong to a [Kit], as test servers
// belong to a test. The caller decides which faults happen when.
package servers
