// Command faults puts Weir through random trials on real Kafka and Redis servers: in each
// round a seed draws the servers, definitions, events and faults, processes of the real binary
// carry the events while the faults happen, and in the end every feature of every entity is
// compared with what a plain loop over the log says. docs/faults.md says what is drawn and how
// to read what comes out.
package main
