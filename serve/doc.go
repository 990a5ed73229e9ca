// Package serve answers questions about features over HTTP.
//
//	POST /v1/query            features and services for many entities at a moment
//	GET  /v1/features/{name}  one feature for one entity
//	GET  /v1/timeline/{name}  the window of one feature for one entity, piece by piece
//	GET  /v1/features         the catalogue
//	GET  /v1/status           what the pipeline of this process does
//	POST /get-online-features what Feast's clients ask
//	GET  /healthz             the process lives
//	GET  /readyz              every injected check passes; which definitions are at work
//	GET  /metrics             for Prometheus
//	GET  /openapi.yaml        all of this in OpenAPI 3.1
//	GET  /                    a page for people, with all of this
//
// Config.Access says what a request must show; probes and the page itself are
// answered without it.
//
// A question is one JSON object:
//
//	{"features": ["device_tx_7d"], "service": "payment_risk",
//	 "entities": [{"device_id": "d000001", "user_id": "u000001"}],
//	 "at": 1532496076032}
//
// It names features, a service or both. An entity is the context of a rule
// engine as it stands: it must hold the keys that the features need, and may
// hold more. Strings are JSON strings; int, decimal and timestamp (in
// milliseconds) are JSON numbers; bool is true or false. The moment is in
// milliseconds since 1970 or RFC 3339, and the present one by default.
//
// The answer has one result for each entity, in their order:
//
//	{"at": 1532496076032, "results": [
//	  {"entity": {"device_id": "d000001", "user_id": "u000001"},
//	   "features": {"device_tx_7d": {"value": 3, "status": "PRESENT",
//	     "from": 1531958400000, "to": 1532496076032, "exact": true}}}]}
//
// A value may also say how far off it may be ("standard_error"; "uncertain", by how
// much it may be greater; "capped"), and "complete_since": the event time, in milliseconds, from which on
// its state holds all events; absent where it holds all there ever were. While the
// window begins before that, the status is INCOMPLETE and the value is not exact. A
// feature whose state does not reach back to the moment answers null with the
// status OUTSIDE_MAX_AGE and, as "oldest", the oldest moment that can be asked
// for; the others of the question answer all the same.
//
// A question may carry events that are not yet on the bus, one or a list of a
// few, each as its record will stand on the topic of its stream:
//
//	"pending": [{"stream": "transaction", "event": {"event_id": "t1", "timestamp": 1532496076032, …}}]
//
// They are applied in thought: the answer is what it will be once they have
// arrived, and nothing is changed. The moment is by default that of the latest
// of them. The answer says of each what it was taken for:
//
//	"pending": [{"stream": "transaction", "time": 1532496076032, "deduplicated": true}]
//
// Deduplicated says that it was not counted again if it has arrived meanwhile,
// for which its stream must remember ids and the event have one; "late": true,
// that it came too late for some features.
//
// A question may wait for a record that its producer has written:
//
//	"wait_for": {"topic": "transactions", "partition": 3, "offset": 1234, "timeout_ms": 100}
//
// The answer says whether it was applied, wherever the question looks, before
// the state was read:
//
//	"waited": {"applied": true}
//
// Whatever a question asks for is read in one round trip to the store, equal
// reads once. An answer is whole or it is an error (see reply.Error).
package serve
