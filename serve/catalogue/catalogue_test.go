package catalogue

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/definition"
)

// A stream describes where and how its enriched events are written.
func TestEnrichedStreams(t *testing.T) {
	r, err := definition.Parse("test.yaml", []byte(`
streams:
  login: {topic: logins, timestamp: ts, fields: {user: string}, enrich: {service: risk, topic: a, format: avro}}
  tx: {topic: transactions, timestamp: ts, fields: {user: string}, enrich: {service: risk, topic: b}}
features:
  payments: COUNT(7d, tx, user)
services:
  risk: [payments]
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []Enrich
	for _, s := range New(r).Streams {
		got = append(got, *s.Enrich)
	}
	want := []Enrich{{Service: "risk", Topic: "a", Format: "avro"}, {Service: "risk", Topic: "b", Format: "json"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
