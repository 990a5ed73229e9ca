package serve

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
