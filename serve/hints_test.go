package serve

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

// An error names only keys of features that the client may ask for, and streams, topics, matches and fields of these, also
// of those that it only derives from.
func TestHintsNameWhatMayBeAsked(t *testing.T) {
	r := defined.Registry(t, `
streams:
  salary: {topic: salaries, timestamp: at, match: grade > 7, fields: {user: string, grade: int, wage: {type: int, required: true}}}
  tx: {topic: transactions, timestamp: at, match: amount > 0, fields: {user: string, amount: int}}
features:
  paid: COUNT(1d, salary, user)
  earned: COUNT(1d, salary, grade)
  spent: COUNT(1d, tx, user)
  rate: {expr: spent / 2}
services:
  payroll: [paid, earned]
  risk: [rate]
`)
	for _, test := range []struct{ client, more, want string }{
		{"a query", `"pending": {"stream": "refunds", "event": {}}`, `"there is no stream \"refunds\"; known are salary, tx"`},
		{"a service:risk", `"pending": {"stream": "refunds", "event": {}}`, `"there is no stream \"refunds\"; known are tx"`},
		{"a service:risk", `"pending": {"stream": "salaries", "event": {}}`, `"there is no stream \"salaries\"; known are tx"`},
		{"a query", `"wait_for": {"topic": "t", "partition": 0, "offset": 0}`, `"there is no stream that reads the topic \"t\"; known are salaries, transactions"`},
		{"a service:risk", `"wait_for": {"topic": "t", "partition": 0, "offset": 0}`, `"there is no stream that reads the topic \"t\"; known are transactions"`},
		{"a service:risk", `"pending": {"stream": "salary", "event": {"at": 1532520000000, "grade": 1}}`, `"pending event 0 does not belong to stream \"salary\""`},
		{"a query", `"pending": {"stream": "salary", "event": {"at": 1532520000000, "grade": 8}}`, `"pending event 0 cannot be used: stream salary: wage: the field wage is required","event":0,"reason":"missing_field","path":"wage"`},
		{"a service:risk", `"pending": {"stream": "salary", "event": {"at": 1532520000000, "grade": 8}}`, `"pending event 0 cannot be used in stream \"salary\"","event":0}`},
		{"a service:risk", `"pending": {"stream": "tx", "event": {"at": 1532520000000, "amount": 0}}`, `"pending event 0 does not belong to stream \"tx\", which takes events for which amount > 0"`},
	} {
		h := newHandler(&fakeReader{}, func(c *setup) {
			c.Registry = func() *features.Registry { return r }
			as(clientOf(t, test.client))(&c.Access)
		})
		body := askWithToken(t, h, "POST", queryPath, `{"service": "risk", "entities": [{"user": "u1"}], `+test.more+`}`).Body.String()
		if !strings.Contains(body, `"message":`+test.want) {
			t.Errorf("%s, %s: %s, want %s", test.client, test.more, body, test.want)
		}
	}
	for client, want := range map[string]string{
		"a query":        `feature \"earned\" has no parameter \"x\"; it takes grade, at, wait_for`,
		"a service:risk": `asking for the feature earned takes the scope query or service:payroll; you have service:risk`,
	} {
		h := newHandler(&fakeReader{}, func(c *setup) {
			c.Registry = func() *features.Registry { return r }
			as(clientOf(t, client))(&c.Access)
		})
		if body := askWithToken(t, h, "GET", "/v1/features/earned?x=1", "").Body.String(); !strings.Contains(body, `"message":"`+want) {
			t.Errorf("%s: %s, want %s", client, body, want)
		}
	}
}
