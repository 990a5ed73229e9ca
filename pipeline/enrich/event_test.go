package enrich

import (
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// An enriched event is JSON: for records in another format, their fields.
func TestEnrichedEventOfLines(t *testing.T) {
	registry := defined.Registry(t, `
streams:
  payment:
    topic: payments
    timestamp: at
    format: {type: csv, columns: [at, user, amount, place.lat, place.lon, status]}
    fields: {user: string, amount: decimal, place: location, status: string, double: {type: decimal, expr: amount * 2}}
`)
	line := []byte("5,\"a\"\"b\",1.50,1.5,-2,\n")
	events, err := registry.NewDecoder().Decode(&record.Record{Partition: state.Partition{Topic: "payments"}, Timestamp: 5, Value: line})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"user":"a\"b","amount":1.5,"place":{"lat":1.5,"lon":-2},"double":3}`
	if got := string(eventJSON(&events[0], line)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
