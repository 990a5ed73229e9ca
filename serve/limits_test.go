package serve

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
)

// Content that is repeated for each entity is bounded by the answer's bytes, because the question's bytes do not bound
// it.
func TestAnswerTooLarge(t *testing.T) {
	r := everyRegistry(t)
	state := clocked{everyState(t, r)}
	times := func(n int, text string) string { return strings.Repeat(text+", ", n-1) + text }
	long := strings.Repeat("m", 1000)
	columns := make([]string, 50)
	for i := range columns {
		columns[i] = fmt.Sprintf(`"v%d:delayed"`, i)
	}
	const refusal = "the answer has more than 65536 bytes; ask about fewer entities, features or members at once"
	for _, test := range []struct{ name, target, body, want string }{
		{
			"a value of a pending event", queryPath, `{"features": ["per_merchant"], "entities": [` + times(100, `{"user": "u1"}`) + `],
				"pending": {"stream": "transaction", "event": {"ts": 1532520000000, "user": "u1", "merchant": "` + long + `", "amount": 1}}}`,
			`{"error":{"code":"answer_too_large","message":"` + refusal + `"}}`,
		},
		{
			"a member", queryPath, `{"features": ["merchants_seen"], "entities": [` + times(100, `{"user": "u1"}`) + `], "members": ["` + long + `"]}`,
			`{"error":{"code":"answer_too_large","message":"` + refusal + `"}}`,
		},
		{
			"columns of Feast's", feastPath, `{"features": [` + strings.Join(columns, ", ") + `], "full_feature_names": true,
				"entities": {"user": [` + times(100, `"u1"`) + `]}}`,
			`"{\"module\":\"feast.errors\",\"class\":\"FeastError\",\"message\":\"` + refusal + `\",\"code\":\"answer_too_large\"}"`,
		},
		{
			"keys that Feast repeats", feastPath, `{"features": ["delayed"], "entities": {"user": [` + times(200, `"u1"`) + `],
				"a": [` + times(200, "1") + `], "b": [` + times(200, "1") + `], "c": [` + times(200, "1") + `], "d": [` + times(200, "1") + `],
				"e": [` + times(200, "1") + `], "f": [` + times(200, "1") + `], "g": [` + times(200, "1") + `]}}`,
			`"{\"module\":\"feast.errors\",\"class\":\"FeastError\",\"message\":\"` + refusal + `\",\"code\":\"answer_too_large\"}"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			ask := func(most int64) (status int, body string) {
				h := newHandler(state, func(c *setup) {
					c.Registry, c.Limits.Answer = func() *features.Registry { return r }, most
				})
				w := do(t, h, "POST", test.target, test.body)
				return w.Code, w.Body.String()
			}
			if status, body := ask(64 << 10); status != http.StatusRequestEntityTooLarge || body != test.want+"\n" {
				t.Errorf("%d %.300s, want 413 %s", status, body, test.want)
			}
			if status, body := ask(1 << 20); status != http.StatusOK {
				t.Errorf("with a higher limit: %d %.300s, want 200", status, body)
			}
		})
	}
}
