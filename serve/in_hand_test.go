package serve

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

const inHandDefinitions = `
streams:
  payment:
    topic: payments
    match: type == "payment"
    timestamp: {path: at, unit: ms}
    max_future: 1m
    fields:
      user: string
      amount: {type: decimal, path: money.amount}
      net: {type: decimal, expr: amount - 1}
  login:
    topic: logins
    timestamp: {path: at, unit: ms}
    fields: {user: string, device: string}
features:
  devices: COUNT_DISTINCT(1d, login, user, device)
  paid: SUM(7d, payment, amount, user)
  times: {expr: event.amount / paid, stream: payment, default: -1}
  above: {expr: times > 0.5 or event.net > 100, stream: payment}
  of_login: {expr: 'event.device + "/" + string(devices)', stream: login}
  shared: {expr: devices * times}
  alike: COUNT(7d, payment, user, where='abs(amount - event.amount) < 0.01')
  larger: MAX(7d, payment, amount, user, where='net > event.net', exclude=current)
  met: SEEN(7d, payment, user, amount, where='event.amount > 1')
  part: {expr: alike / times}
  own: {expr: 'event.user == "u1" and paid > 0', stream: payment}
`

// inHand has 20 paid by u1, at two devices.
func inHand(t *testing.T) *bus {
	r := defined.Registry(t, inHandDefinitions)
	b := &bus{T: t, registry: r, store: memory.New()}
	b.handler = newHandler(clocked{b.store}, func(c *setup) { c.Registry = func() *features.Registry { return r } })
	b.arrive("payments", `{"type": "payment", "at": 1532519000000, "user": "u1", "money": {"amount": 20}}`)
	b.arrive("logins", `{"at": 1532519000000, "user": "u1", "device": "d1"}`)
	b.arrive("logins", `{"at": 1532519000000, "user": "u1", "device": "d2"}`)
	return b
}

// paying is a payment in a question; at is in seconds before noon.
func paying(ago string, rest string) string {
	return `{"stream": "payment", "event": {"type": "payment", "at": 15325199` + ago + `000, ` + rest + `}}`
}

func TestEventInHand(t *testing.T) {
	b := inHand(t)
	ten, thirty := paying("99", `"user": "u1", "money": {"amount": 10}`), paying("98", `"user": "u1", "money": {"amount": 30}`)
	for _, test := range []struct {
		name, feature, more, value, status string
	}{
		{"none", "times", ``, `null`, "NO_EVENT"},
		{"null", "times", `, "event": null`, `null`, "NO_EVENT"},
		{"only looked at", "times", `, "event": ` + ten, `0.5`, "PRESENT"},
		{"it does not count", "paid", `, "event": ` + ten, `20`, "PRESENT"},
		{"counted as well", "times", `, "pending": ` + ten, `0.3333333333333333`, "PRESENT"},
		{"the latest counts for all", "times", `, "pending": [` + ten + `, ` + thirty + `]`, `0.16666666666666666`, "PRESENT"},
		{"one that is looked at goes before those pending", "times", `, "event": ` + thirty + `, "pending": ` + ten, `1`, "PRESENT"},
		{"without the field", "times", `, "event": ` + paying("99", `"user": "u1"`), `-1`, "PRESENT"},
		{"of nobody", "times", `, "event": ` + paying("99", `"money": {"amount": 5}`), `0.25`, "PRESENT"},
		{"of another user", "times", `, "event": ` + paying("99", `"user": "u2", "money": {"amount": 5}`), `null`, "NO_EVENT"},
		{"pending of another user, too", "times", `, "pending": [` + ten + `, ` + paying("99", `"user": "u2", "money": {"amount": 5}`) + `]`, `0.3333333333333333`, "PRESENT"},
		{"of another stream", "of_login", `, "event": ` + ten, `null`, "NO_EVENT"},
		{"two streams", "of_login", `, "event": ` + ten + `, "pending": {"stream": "login", "event": {"at": 1532519990000, "user": "u1", "device": "d3"}}`, `"d3/3"`, "PRESENT"},
		{"of a part", "shared", `, "event": ` + ten, `1`, "PRESENT"},
		{"none of a part", "shared", ``, `null`, "NO_EVENT"},
		{"of both", "above", `, "event": ` + paying("99", `"user": "u1", "money": {"amount": 101.5}`), `true`, "PRESENT"},
		{"it is not needed", "devices", ``, `2`, "PRESENT"},
		{"compared with none", "alike", ``, `null`, "NO_EVENT"},
		{"compared with one like it", "alike", `, "event": ` + paying("99", `"user": "u1", "money": {"amount": 20}`), `1`, "PRESENT"},
		{"compared and counted", "alike", `, "pending": ` + paying("99", `"user": "u1", "money": {"amount": 20}`), `2`, "PRESENT"},
		{"compared with another", "alike", `, "event": ` + ten, `0`, "NOT_FOUND"},
		{"compared with an event without the field", "alike", `, "event": ` + paying("99", `"user": "u1"`), `0`, "NOT_FOUND"},
		{"compared with one of another user", "alike", `, "event": ` + paying("99", `"user": "u2", "money": {"amount": 20}`), `null`, "NO_EVENT"},
		{"compared with one of another stream", "alike", `, "event": {"stream": "login", "event": {"at": 1532519990000, "user": "u1"}}`, `null`, "NO_EVENT"},
		{"compared with the latest of those pending", "alike", `, "pending": [` + thirty + `, ` + thirty + `, ` + paying("99", `"user": "u1", "money": {"amount": 30}`) + `]`, `3`, "PRESENT"},
		{"compared with what is computed of it", "larger", `, "pending": ` + ten, `20`, "PRESENT"},
		{"compared without itself", "larger", `, "pending": ` + thirty, `null`, "NOT_FOUND"},
		{"compared by a part", "part", `, "event": ` + paying("99", `"user": "u1", "money": {"amount": 20}`), `1`, "PRESENT"},
		{"compared with none by a part", "part", ``, `null`, "NO_EVENT"},
	} {
		w := do(t, b.handler, "POST", queryPath, `{"features": ["`+test.feature+`"], "entities": [{"user": "u1"}]`+test.more+`}`)
		if want := `"` + test.feature + `":{"value":` + test.value + `,"status":"` + test.status + `"`; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s, want %s", test.name, w.Body, want)
		}
	}
}

// Features about members need the event in hand, too.
func TestMembersComparedWithTheEventInHand(t *testing.T) {
	b := inHand(t)
	ask := func(more string) string {
		return do(t, b.handler, "POST", queryPath, `{"features": ["met"], "entities": [{"user": "u1"}], "members": [20, 7]`+more+`}`).Body.String()
	}
	ten := paying("99", `"user": "u1", "money": {"amount": 10}`)
	for more, want := range map[string]string{
		``:                 `"members":[{"member":20,"value":null,"status":"NO_EVENT"},{"member":7,"value":null,"status":"NO_EVENT"}]`,
		`, "event":` + ten: `"members":[{"member":20,"value":true,"status":"PRESENT"},{"member":7,"value":false,"status":"PRESENT"}]`,
		`, "event":` + paying("99", `"user": "u1", "money": {"amount": 1}`): `"members":[{"member":20,"value":false,"status":"NOT_FOUND"},{"member":7,"value":false,"status":"NOT_FOUND"}]`,
	} {
		if got := ask(more); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
}

// The moment is that of the event, and the event of each entity is its own.
func TestEventInHandOfManyEntities(t *testing.T) {
	b := inHand(t)
	w := do(t, b.handler, "POST", queryPath, `{"features": ["times"], "entities": [{"user": "u1"}, {"user": "u3"}], "event": `+paying("90", `"user": "u1", "money": {"amount": 10}`)+`}`)
	want := `{"at":1532519990000,"results":[` +
		`{"entity":{"user":"u1"},"features":{"times":{"value":0.5,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true}}},` +
		`{"entity":{"user":"u3"},"features":{"times":{"value":null,"status":"NO_EVENT","from":1531958400000,"to":1532520000000,"exact":false}}}]}` + "\n"
	if got := w.Body.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	w = do(t, b.handler, "POST", queryPath, `{"features": ["times"], "entities": [{"user": "u1"}, {"user": "u3"}], "pending": [`+
		paying("99", `"user": "u3", "money": {"amount": 5}`)+`, `+paying("98", `"user": "u1", "money": {"amount": 20}`)+`]}`)
	for _, want := range []string{`{"user":"u1"},"features":{"times":{"value":0.5,`, `{"user":"u3"},"features":{"times":{"value":1,`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s\nlacks %s", w.Body, want)
		}
	}
}

func TestBadEventInHand(t *testing.T) {
	b := inHand(t)
	for event, want := range map[string]string{
		`7`:  `"message":"event must be an object with stream and event; 7 is not"`,
		`[]`: `"message":"event must be an object with stream and event; a list is not"`,
		`{}`: `"message":"the event must have stream and event, such as {\"stream\": \"transaction\", \"event\": {…}}"`,
		`{"stream": "payment", "event": {}, "x": 1}`:                        `"message":"the event has no key \"x\"`,
		`{"stream": "paymnt", "event": {}}`:                                 `there is no stream \"paymnt\"; did you mean \"payment\"?`,
		`{"stream": "payment", "event": {"type": "refund", "at": 1}}`:       `"message":"the event does not belong to stream \"payment\"`,
		paying("99", `"user": "u1", "money": {"amount": "much"}`):           `"message":"the event cannot be used: `,
		`{"stream": "payment", "event": {"type": "payment", "user": "u1"}}`: `"message":"the event cannot be used: `,
	} {
		w := do(t, b.handler, "POST", queryPath, `{"features": ["times"], "entities": [{"user": "u1"}], "event": `+event+`}`)
		if w.Code < 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s\nwant %s", event, w.Code, w.Body, want)
		}
	}
}

func TestFeaturesThatNeedAnEventAreListed(t *testing.T) {
	b := inHand(t)
	w := do(t, b.handler, "GET", "/v1/features", "")
	for name, want := range map[string]string{"times": `"event":"payment"`, "shared": `"event":"payment"`, "of_login": `"event":"login"`, "alike": `"event":"payment"`, "part": `"event":"payment"`} {
		_, after, _ := strings.Cut(w.Body.String(), `{"name":"`+name+`"`)
		if of, _, _ := strings.Cut(after, `{"name":"`); !strings.Contains(of, want) {
			t.Errorf("%s: %s, want %s", name, of, want)
		}
	}
	if n := strings.Count(w.Body.String(), `"event":`); n != 9 {
		t.Errorf("%d features need an event, want 9: %s", n, w.Body)
	}
}

// Whatever the event, looked at or pending: an answer is what its expression makes of the event's fields and of the answers of
// its parts in the same response.
func TestEventInHandIsPutIntoTheExpression(t *testing.T) {
	b := inHand(t)
	decimal := expr.Variable{Type: value.Decimal, Scale: 2}
	amount, paid := decimal, decimal
	amount.Name, paid.Name = "amount", "paid"
	plain, err := expr.Compile("amount / paid", []expr.Variable{amount, paid}, value.Null)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"null", "0", "-0.01", "12.34", "-20", "100000000000", "-92233720368547.58"} {
		for _, key := range []string{"event", "pending"} {
			w := do(t, b.handler, "POST", queryPath, `{"features": ["paid", "times", "shared", "devices"], "entities": [{"user": "u1"}], "`+key+`": `+
				paying("99", `"user": "u1", "money": {"amount": `+text+`}`)+`}`)
			var got struct {
				Results []struct {
					Features map[string]struct{ Value json.Number }
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Results) != 1 {
				t.Fatal(err, w.Body)
			}
			values := make([]value.Value, 2)
			for i, number := range []string{text, got.Results[0].Features["paid"].Value.String()} {
				if number != "null" {
					values[i] = value.ParseText(value.Decimal, 2, number)
				}
			}
			want, err := plain.Eval(values)
			if err != nil {
				t.Fatal(err)
			}
			if want.IsNull() {
				want = value.Value{Type: value.Float, Flt: -1} // the default
			}
			times, _ := got.Results[0].Features["times"].Value.Float64()
			shared, _ := got.Results[0].Features["shared"].Value.Float64()
			if times != want.Float64() || shared != 2*times {
				t.Errorf("%s %s: %s, want times %v", key, text, w.Body, want.Float64())
			}
		}
	}
}
