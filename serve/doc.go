// Package serve answers questions about features over HTTP.
//
//	POST /v1/query            features and services for many entities at a moment
//	GET  /v1/features/{name}  one feature for one entity
//	GET  /v1/timeline/{name}  the window of one feature for one entity, piece by piece
//	GET  /v1/features         the catalogue
//	GET  /v1/definitions      the definitions in use, as they were written
//	POST /v1/preview          what a file of definitions would answer on the last minutes
//	GET  /v1/dead-letters     the newest dead letters, with the beginning of their records
//	GET  /v1/status           the status of this process and its pipeline
//	POST /get-online-features what Feast's clients ask
//	GET  /healthz             whether the process is alive
//	GET  /readyz              whether every check passes; which definitions are in use
//	GET  /metrics             for Prometheus
//	GET  /openapi.yaml        all of this in OpenAPI 3.1
//	GET  /                    the web page
//
// Config.Access says how requests authenticate; probes and the page itself need no
// authentication.
//
// A question is one JSON object:
//
//	{"features": ["device_tx_7d"], "service": "payment_risk",
//	 "entities": [{"device_id": "d000001", "user_id": "u000001"}],
//	 "at": 1532496076032}
//
// It names features, a service or both. An entity may be the whole context of a rule
// engine: it must hold the keys that the features need, and may
// hold more. Strings are JSON strings; int, decimal and timestamp (in
// milliseconds) are JSON numbers; bool is true or false. The moment is in
// milliseconds since 1970 or RFC 3339, by default now.
//
// The answer has one result for each entity, in their order:
//
//	{"at": 1532496076032, "results": [
//	  {"entity": {"device_id": "d000001", "user_id": "u000001"},
//	   "features": {"device_tx_7d": {"value": 3, "status": "PRESENT",
//	     "from": 1531958400000, "to": 1532496076032, "exact": true}}}]}
//
// A value may also state its error ("standard_error"; "uncertain": how much greater it may be; "capped"), and "complete_since": the event time, in milliseconds, since which its
// state holds all events; absent if it holds all events. While the window begins before that,
// the status is INCOMPLETE and the value is not exact. A feature whose state does not reach
// back to the moment answers null with the status OUTSIDE_MAX_AGE and, as "oldest", the oldest
// moment that can be asked for; the other features of the question are answered.
//
// A question may contain events that are not yet on the bus, one or a list of a
// few, each in the form of its future record on the topic of its stream:
//
//	"pending": [{"stream": "transaction", "event": {"event_id": "t1", "timestamp": 1532496076032, …}}]
//
// They count for this question only: the answer is as it will be
// once they are applied, and nothing is written. The moment is by default that of the
// latest of them. The answer says how each was read:
//
//	"pending": [{"stream": "transaction", "time": 1532496076032, "deduplicated": true}]
//
// Deduplicated says that the event is not counted twice if it was already applied: its
// stream remembers IDs, and the event has one. "late": true says that it came too late
// for some features.
//
// A question may wait for a record that its producer has written:
//
//	"wait_for": {"topic": "transactions", "partition": 3, "offset": 1234, "timeout_ms": 100}
//
// The answer reports whether the record was applied to all state that the question reads, before the state was read:
//
//	"waited": {"applied": true}
//
// A question reads all that it needs in one round trip to the store, equal reads once;
// multi-hop features take a second. An answer is complete or an error (see reply.Error).
package serve
