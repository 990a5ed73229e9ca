package featuretest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A question may have the event in hand, which is only looked at.
func TestEventInHand(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("definitions.yaml", `
streams:
  pay: {topic: payments, match: kind == "pay", timestamp: {path: at, unit: datetime}, fields: {user: string, amount: {type: decimal, path: sum}, t: {type: timestamp, path: at, unit: datetime}}}
features:
  paid: SUM(1h, pay, amount, user)
  newest: MAX(lifetime, pay, t, user)
  times: {expr: event.amount / paid, stream: pay}
  since: {expr: event.t - newest, stream: pay}
  alike: COUNT(1h, pay, user, where='amount == event.amount')
  met: SEEN(1h, pay, user, amount, where='amount < event.amount')
  limited: {expr: event.amount > shop.limit, stream: pay, by: user}
tables:
  shop: {topic: shops, key: user, fields: {limit: int}}
`)
	ask := func(question string) string {
		t.Helper()
		path := write("some_test.yaml", `
defaults: {pay: {kind: pay, user: u}}
tables: {shop: [{user: u, limit: 7}, {user: v, limit: 2}]}
tests:
  - name: t
    events: [pay: {at: 1m, amount: 10}]
    questions: [{at: 2m, entity: {user: u}, `+question+`}]
`)
		r, err := Run(t.Context(), path)
		if err != nil {
			return strings.ReplaceAll(err.Error(), path, "FILE")
		}
		return fmt.Sprint(r.Tests[0].Failures)
	}
	for question, want := range map[string]string{
		`event: {pay: {amount: 5}}, expect: {times: 0.5, paid: 10, since: 60000}`: "[]",
		`event: {pay: {at: 90s, amount: 5}}, expect: {since: 30000}`:              "[]",
		`event: {pay: {}}, expect: {times: {value: null, status: NULL_VALUE}}`:    "[]",
		`expect: {times: {value: null, status: NO_EVENT}}`:                        "[]",
		`event: {pay: {amount: 5}}, expect: {times: 1}`:                           "expected 1, got 0.5",
		`event: {pay: {amount: 10}}, expect: {alike: 1}`:                          "[]",
		`event: {pay: {amount: 5}}, expect: {alike: 1}`:                           "expected 1, got 0",
		`expect: {alike: {value: null, status: NO_EVENT}}`:                        "[]",
		`event: {pay: {amount: 11}}, expect: {met: {10: true, 11: false}}`:        "[]",
		`expect: {met: {10: true}}`:                                               `expected true of "10", got null (NO_EVENT`,
		`event: {pay: {user: v, amount: 5}}, expect: {times: {value: null, status: NO_EVENT}, limited: {value: null, status: NO_EVENT}, paid: 10}`:                   "[]",
		`event: {pay: {user: null, amount: 5}}, expect: {times: 0.5, limited: false}`:                                                                                "[]",
		`expect: {paid: 10}}, {at: 2m, entity: {user: v}, event: {pay: {amount: 3}}, expect: {limited: true, times: {value: null, status: NOT_FOUND}}`:               "[]",
		`expect: {paid: 10}}, {at: 2m, entity: {user: null}, expect: {paid: {value: null, status: NOT_FOUND, exact: true}, alike: {value: null, status: NOT_FOUND}}`: "[]",
		`expect: {paid: 10}}, {at: 2m, entity: {user: ~}, event: {pay: {amount: 3}}, expect: {times: {value: null, status: NOT_FOUND}}`:                              "[]",
		`expect: {paid: 10}}, {at: 2m, entity: {user: "null"}, expect: {paid: {value: 0, status: NOT_FOUND}}`:                                                        "[]",
		`expect: {paid: 10}}, {at: 2m, entity: {user: null}, expect: {met: {10: false}}`:                                                                             `expected false of "10", got null (NOT_FOUND`,
		`expect: {met: {10: null}}}, {at: 2m, entity: {user: null}, expect: {met: {10: null}}`:                                                                       "[]",
		`expect: {paid: 10}}, {at: 2m, entity: {user: null}, expect: {paid: 0}`:                                                                                      "expected 0, got null",
		`event: {pay: {amount: much}}, expect: {times: 1}`:                                                                                                           "the event cannot be used: ",
		`event: {pay: {kind: refund}}, expect: {times: 1}`:                                                                                                           "stream pay does not take the event ",
		`event: {pya: {amount: 5}}, expect: {times: 1}`:                                                                                                              `FILE:7:52: unknown stream "pya"; did you mean "pay"?`,
		`event: {pay: {amuont: 5}}, expect: {times: 1}`:                                                                                                              `FILE:7:52: unknown field "amuont" of stream pay; did you mean "amount"?`,
		`event: {pay: 5}, expect: {times: 1}`:                                                                                                                        "FILE:7:52: event: expected the event in hand, such as {transaction: {amount: 12.50}}",
		`event: [], expect: {times: 1}`:                                                                                                                              "FILE:7:52: event: expected the event in hand, such as {transaction: {amount: 12.50}}",
		`event: {pay: {amount: 5}, login: {}}, expect: {times: 1}`:                                                                                                   "FILE:7:52: event: expected the event in hand, such as {transaction: {amount: 12.50}}",
	} {
		if got := ask(question); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
	}
}
