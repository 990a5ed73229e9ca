package catalogue

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/cost"
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
	var got []cost.Enrichment
	for _, s := range New(r).Streams {
		got = append(got, *s.Enrich)
	}
	want := []cost.Enrichment{{Service: "risk", Topic: "a", Format: "avro"}, {Service: "risk", Topic: "b", Format: "json"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A client of a service sees no references to features that it may not ask for.
func TestPartsOfAService(t *testing.T) {
	r := defined.Registry(t, `
streams:
  tx: {topic: transactions, timestamp: ts, fields: {user: string, amount: decimal}}
features:
  paid: SUM(1d, tx, amount, user)
  payments: COUNT(1d, tx, user)
  mean: {expr: paid / payments}
services:
  risk: [mean, paid]
`)
	for _, f := range New(r).Of(func(string) bool { return true }).Features {
		if diff := cmp.Diff(map[string][]string{"mean": {"paid"}}[f.Name], f.Parts); diff != "" {
			t.Errorf("parts of %s (-want +got):\n%s", f.Name, diff)
		}
	}
}

// A client of a service sees the streams of all its features, also of those that are made of others.
func TestStreamsOfAService(t *testing.T) {
	r := defined.Registry(t, `
streams:
  login: {topic: logins, timestamp: ts, fields: {user: string, device: string}}
  tx: {topic: transactions, timestamp: ts, fields: {user: string, device: string}}
  view: {topic: views, timestamp: ts, fields: {user: string}}
features:
  logins: COUNT(1d, login, user)
  payments: COUNT(1d, tx, user)
  ratio: {expr: payments / logins}
  neighbours: COUNT(1d, tx, SET(1d, login, device, user))
  views: COUNT(1d, view, user)
services:
  ratios: [ratio]
  networks: [neighbours]
`)
	for _, service := range []string{"ratios", "networks"} {
		var got []string
		for _, s := range New(r).Of(func(name string) bool { return name == service }).Streams {
			got = append(got, s.Name)
		}
		if diff := cmp.Diff([]string{"login", "tx"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", service, diff)
		}
	}
}
