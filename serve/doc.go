// Package serve answers questions about features over HTTP.
//
//	POST /v1/query            features and services for many entities at a moment
//	GET  /v1/features/{name}  one feature for one entity
//	GET  /v1/features         the catalogue
//	GET  /healthz             the process lives
//	GET  /readyz              every injected check passes
//	GET  /metrics             for Prometheus
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
// Whatever a question asks for is read in one round trip to the store, equal
// reads once. An answer is whole or it is an error (see Error).
package serve
