package serve

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A question about the past says whether its values may count later events, also where the value is a neutral one or a
// null; a question about the present does not. Without at, pending events that are no older than max_future are the present.
func TestPastMoments(t *testing.T) {
	b := newBus(t)
	b.arrive("payments", payment("p0", -60, "ok"))
	b.arrive("logins", `{"id": 1, "at": 1532519980000, "user": "u1", "device": "d1"}`)
	now := noon.UnixMilli()
	pending := func(age time.Duration) string {
		return `, "pending": {"stream": "payment", "event": ` + payment("p1", -int(age.Seconds()), "ok") + `}`
	}
	const plain = `"value":1,"status":"PRESENT"`
	for _, test := range []struct{ name, more, want string }{
		{"the present", "", `"tx":{` + plain},
		{"the present, named", fmt.Sprintf(`, "at": %d`, now), `"tx":{` + plain},
		{"the future", fmt.Sprintf(`, "at": %d`, now+1), `"tx":{` + plain},
		{"at the end of a tile", fmt.Sprintf(`, "at": %d`, now-1), `"devices":{"value":1,"status":"PRESENT"`},
		{"in the tile of an event", fmt.Sprintf(`, "at": %d`, now-2), `"tx":{"value":1,"status":"LATER_EVENTS","from":1532433600000,"to":1532519999999,"exact":false,"later_events":true}`},
		{"derived from both", fmt.Sprintf(`, "at": %d`, now-2), `"per_device":{"value":1,"status":"LATER_EVENTS"`},
		{"before the event of a tile", fmt.Sprintf(`, "at": %d`, now-3_000_000), `"devices":{"value":1,"status":"LATER_EVENTS"`},
		{"from a log", fmt.Sprintf(`, "at": %d`, now-50_000), `"refusals":{"value":0,"status":"NOT_FOUND","from":1532516350001,"to":1532519950000,"exact":true}`},
		{"from a log, before its events", fmt.Sprintf(`, "at": %d`, now-70_000), `"refusals":{"value":0,"status":"NOT_FOUND"`},
		{"a pending event", pending(time.Second), `"tx":{"value":2,"status":"PRESENT"`},
		{"a pending event as old as may be", pending(time.Minute), `"tx":{"value":2,"status":"PRESENT"`},
		{"an older pending event", pending(time.Minute + time.Second), `"tx":{"value":2,"status":"LATER_EVENTS"`},
		{"a pending event and a moment", pending(time.Minute) + fmt.Sprintf(`, "at": %d`, now-2), `"tx":{"value":2,"status":"LATER_EVENTS"`},
	} {
		if got := b.ask(test.more); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}
	w := do(t, b.handler, "GET", fmt.Sprintf("/v1/features/tx?user=u1&at=%d", now-2), "")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"status":"LATER_EVENTS"`) {
		t.Errorf("GET: %s", w.Body)
	}
}
