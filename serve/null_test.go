package serve

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// A null is treated like an absent value, because many clients write it.
func TestNullsAreAbsent(t *testing.T) {
	ask := func(more string) string {
		h := waitingHandler(t, &arrival{})
		return do(t, h, "POST", queryPath, `{"features": ["views"], "entities": [{"user": "u1"}]`+more+`}`).Body.String()
	}
	for with, without := range map[string]string{
		`, "at": null, "service": null, "members": null, "pending": null, "wait_for": null`: ``,
		`, "wait_for": {"topic": "views", "partition": 3, "offset": 0, "timeout_ms": null}`: `, "wait_for": {"topic": "views", "partition": 3, "offset": 0}`,
		`, "members": {"views": null}`: ``,
	} {
		if diff := cmp.Diff(ask(without), ask(with)); diff != "" {
			t.Errorf("%s (-without +with):\n%s", with, diff)
		}
	}
}

// A key that is null, as an event may lack it, makes the features that need it null; the others are answered, and nothing
// is read for it. An empty text is a value like others.
func TestNullKeys(t *testing.T) {
	r := defined.Registry(t, `
streams:
  tx: {topic: tx, timestamp: at, fields: {user: string, card: int, shop: string}}
features:
  by_card: COUNT(1h, tx, card)
  by_both: COUNT(1h, tx, user, card)
  by_user: COUNT(1h, tx, user)
  ratio: {expr: by_card / by_user, default: 0}
  seen: SEEN(1d, tx, card, shop)
`)
	var read []string
	h := newHandler(&fakeReader{read: func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		states := make([]state.WindowState, len(reads))
		for i, r := range reads {
			read = append(read, r.Entity)
			states[i].Buckets = []state.Bucket{{Tile: r.Last, Value: value.Value{Type: value.Int, Num: 2}}}
		}
		return states, nil
	}}, func(c *setup) { c.Registry = func() *features.Registry { return r } })
	const null = `{"value":null,"status":"NOT_FOUND","from":1532516460000,"to":1532520000000,"exact":true}`
	const two = `{"value":2,"status":"PRESENT","from":1532516460000,"to":1532520000000,"exact":true}`
	for _, test := range []struct{ name, question, want, read string }{
		{
			"one of two keys", `{"features": ["by_card", "by_both", "by_user", "ratio"], "entities": [{"user": "u1", "card": null}]}`,
			`"results":[{"entity":{"user":"u1","card":null},"features":{"by_card":` + null + `,"by_both":` + null + `,"by_user":` + two + `,"ratio":` + null + `}}]}`, "u1",
		},
		{
			"all keys", `{"features": ["by_card"], "entities": [{"card": null}]}`,
			`"results":[{"entity":{"card":null},"features":{"by_card":` + null + `}}]}`, "",
		},
		{
			"beside others, and empty texts", `{"features": ["by_user"], "entities": [{"user": null}, {"user": ""}, {"user": null}, {"user": "u1"}]}`,
			`"results":[{"entity":{"user":null},"features":{"by_user":` + null + `}},{"entity":{"user":""},"features":{"by_user":` + two +
				`}},{"entity":{"user":null},"features":{"by_user":` + null + `}},{"entity":{"user":"u1"},"features":{"by_user":` + two + `}}]}`, " u1",
		},
		{
			"members", `{"features": ["seen"], "members": ["a"], "entities": [{"card": null}]}`,
			`"features":{"seen":{"members":[{"member":"a","value":null,"status":"NOT_FOUND"}],"from":1532437200000,"to":1532520000000,"exact":true}}}]}`, "",
		},
		{
			"further back than is kept", `{"features": ["by_card"], "entities": [{"card": null}], "at": 1500000000000}`,
			`"features":{"by_card":{"value":null,"status":"NOT_FOUND","from":1499996460000,"to":1500000059999,"exact":true}}}]}`, "",
		},
	} {
		read = nil
		w := do(t, h, "POST", queryPath, test.question)
		if got := w.Body.String(); w.Code != http.StatusOK || !strings.HasSuffix(got, test.want+"\n") || strings.Join(read, " ") != test.read {
			t.Errorf("%s: %d %s\nread %q; want %s\nread %q", test.name, w.Code, got, read, test.want, test.read)
		}
	}
	for target, want := range map[string]string{
		"/v1/features/by_card?card=null": `"features":{"by_card":` + null + `}}]}`,
		"/v1/timeline/by_card?card=null": `"points":[` + null + `]}`,
		"/v1/features/by_user?user=null": `"features":{"by_user":` + two + `}}]}`, // a text
	} {
		if w := do(t, h, "GET", target, ""); w.Code != http.StatusOK || !strings.HasSuffix(w.Body.String(), want+"\n") {
			t.Errorf("%s: %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
	w := do(t, h, "POST", feastPath, `{"features": ["by_card"], "entities": {"card": [null, 7]}}`)
	if want := `{"values":[null,2],"statuses":["NOT_FOUND","PRESENT"]`; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
		t.Errorf("Feast: %d %s, want %s", w.Code, w.Body, want)
	}
	for _, missing := range []string{`{}`, `{"card": null}`} { // a key that is missing may be misspelt
		if w := do(t, h, "POST", queryPath, `{"features": ["by_both"], "entities": [`+missing+`]}`); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", missing, w.Code, w.Body)
		}
	}
}
