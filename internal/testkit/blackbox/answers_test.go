package blackbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// The completeness of each entity is checked, because one may lack what others do not need.
func TestFirstIncomplete(t *testing.T) {
	r := defined.Registry(t, `
streams: {login: {topic: logins, timestamp: at, fields: {user: string, device: string}}}
features:
  latest: COUNT(last 4, login, user, tile=exact)
  by_device: COUNT(1h, login, device)
`)
	loop := model.New(r)
	for i, user := range []string{"a", "a", "b", "a", "c"} {
		value := fmt.Appendf(nil, `{"at": %d, "user": %q, "device": "d"}`, 1000+i, user)
		if err := loop.Apply(record.Record{Partition: state.Partition{Topic: "logins"}, Offset: int64(i), Timestamp: int64(1000 + i), Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	for _, lacking := range []string{"", "b"} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, asked *http.Request) {
			var q Question
			if err := json.NewDecoder(asked.Body).Decode(&q); err != nil {
				t.Error(err)
			}
			var results []string
			for _, entity := range q.Entities {
				answer := `{"status": "PRESENT", "value": 1}`
				if lacking != "" && strings.Contains(string(entity), fmt.Sprintf(`"user":%q`, lacking)) {
					answer = `{"status": "INCOMPLETE", "value": 1, "complete_since": 1003}`
				}
				results = append(results, fmt.Sprintf(`{"features": {%q: %s}}`, q.Features[0], answer))
			}
			_, _ = fmt.Fprintf(w, `{"results": [%s]}`, strings.Join(results, ", "))
		}))
		want := ""
		if lacking != "" {
			want = "latest of b at 1004 is INCOMPLETE, complete since 1003"
		}
		c := Comparison{T: t, URL: api.URL, Model: loop}
		if got, err := c.FirstIncomplete(r, 1004, 1004); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
		api.Close()
		if _, err := c.FirstIncomplete(r, 1004, 1004); err == nil {
			t.Error("no error from a server that does not answer")
		}
	}
}
