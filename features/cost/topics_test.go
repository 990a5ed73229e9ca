package cost

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// The events of a stream are spread over its topics, and a backfill of any of them writes the same keys.
func TestTopicsOfAStream(t *testing.T) {
	r := defined.Registry(t, `
streams:
  tx: {topics: [payments, transfers], timestamp: at, fields: {user: string}}
  fee: {topic: payments, timestamp: at, fields: {user: string}}
features:
  count: COUNT(7d, tx, user)
  fees: COUNT(7d, fee, user)
`)
	w, err := ParseWorkload(r, "tx=1000/s,fee=100/s,user=10")
	if err != nil {
		t.Fatal(err)
	}
	topics := Size(r, w).Topics
	if len(topics) != 2 || topics[0].Topic != "payments" || topics[0].Events != 600 || topics[1].Topic != "transfers" || topics[1].Events != 500 {
		t.Errorf("the topics have %+v, want 600 and 500 events a second", topics)
	}
	fill := &state.Fill{Columns: map[string][]string{}}
	for key, of := range r.Plan().Topics {
		for _, topic := range of {
			fill.Columns[topic] = append(fill.Columns[topic], key)
		}
	}
	if a, b := FillSeconds(r, fill, "payments", 1000), FillSeconds(r, fill, "transfers", 1000); a != b || FillSeconds(r, fill, "others", 1000) >= a {
		t.Errorf("a fill takes %v s for payments and %v s for transfers, want the same, and more than without keys", a, b)
	}
	var text strings.Builder
	Explain(r).WriteText(&text)
	if want := "tx        payments, transfers  1 "; !strings.Contains(text.String(), want) {
		t.Errorf("%q is not in\n%s", want, text.String())
	}
}
