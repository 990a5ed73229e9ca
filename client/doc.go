// Package client asks a Weir server for features.
//
//	weir := client.New("http://localhost:8080")
//	answer, err := weir.Query(ctx, client.Question{
//		Features: []string{"device_tx_7d"},
//		Entities: []client.Entity{{"device_id": "d000001"}},
//	})
//	if err != nil {
//		… // decide without features
//	}
//	transactions := answer.Results[0].Features["device_tx_7d"]
//	if n, ok := transactions.Int(); !transactions.Known() || !ok {
//		… // decide without this feature: it is not 0
//	} else if n > 3 {
//		…
//	}
//
// A question writes nothing, so it is retried where that may help: when the connection fails, and
// when the server answers 503 and says when to retry. A Client may be used by many goroutines at
// once. The package is a module of its own, which needs Go 1.22 or later and nothing but its
// standard library:
//
//	go get github.com/weir-stream/weir/client
package client
