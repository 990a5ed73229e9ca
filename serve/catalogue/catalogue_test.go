package catalogue

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/internal/testkit/defined"
)

// A stream describes where and how its enriched events are written.
func TestEnrichedStreams(t *testing.T) {
	r := defined.Registry(t, `
streams:
  login: {topic: logins, timestamp: ts, fields: {user: string}, enrich: {service: risk, topic: a, format: avro}}
  tx: {topic: transactions, timestamp: ts, fields: {user: string}, enrich: {service: risk, topic: b}}
features:
  payments: COUNT(7d, tx, user)
services:
  risk: [payments]
`)
	var got []Enrich
	for _, s := range New(r).Streams {
		got = append(got, *s.Enrich)
	}
	want := []Enrich{{Service: "risk", Topic: "a", Format: "avro"}, {Service: "risk", Topic: "b", Format: "json"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
