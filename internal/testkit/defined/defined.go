// Package defined compiles definitions for tests.
package defined

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
)

// Streams are the streams that tests of features stand on.
const Streams = `
streams:
  tx:
    topic: transactions
    timestamp: ts
    fields:
      user: string
      device: string
      ip: string
      ip_c: {type: string, expr: 'cidr(ip, 24)'}
      ip_b: {type: string, expr: 'cidr(ip_c, 16)'}
      amount: {type: decimal, scale: 2}
      fee: {type: decimal, scale: 2, required: true}
      ok: bool
  login:
    topic: logins
    timestamp: ts
    fields: {user: string, device: string}
features:
`

// Registry compiles definitions.
func Registry(t testing.TB, definitions string) *features.Registry {
	t.Helper()
	r, err := definition.Parse("test.yaml", []byte(definitions))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Features compiles features, "name: definition" each, over Streams.
func Features(t testing.TB, lines ...string) *features.Registry {
	t.Helper()
	return Registry(t, Streams+"  "+strings.Join(lines, "\n  ")+"\n")
}

// Feature is the feature of that name.
func Feature(t testing.TB, r *features.Registry, name string) *features.Feature {
	t.Helper()
	f, ok := r.Feature(name)
	if !ok {
		t.Fatalf("no feature %q", name)
	}
	return f
}
