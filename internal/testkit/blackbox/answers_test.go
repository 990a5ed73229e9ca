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

// What an answer says of a row that is younger than the moment is compared.
func TestYoungerRows(t *testing.T) {
	r := defined.Registry(t, `
tables: {merchant: {topic: merchants, key: shop, fields: {risk: string}}}
features: {risk: {expr: merchant.risk}}
`)
	loop := model.New(r)
	row := record.Record{Partition: state.Partition{Topic: "merchants"}, Timestamp: 1000, Key: []byte("s"), Value: []byte(`{"shop": "s", "risk": "high"}`)}
	if err := loop.Apply(row); err != nil {
		t.Fatal(err)
	}
	const present, later = `"status": "PRESENT", "exact": true`, `"status": "LATER_EVENTS", "exact": false, "later_events": true`
	for _, test := range []struct {
		at      int64
		says    string
		differs bool
	}{{1000, present, false}, {1000, later, true}, {999, later, false}, {999, present, true}} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"results": [{"features": {"risk": {"value": "high", %s}}}]}`, test.says)
		}))
		c := Comparison{T: &quiet{TB: t}, URL: api.URL, Model: loop}
		c.All(r, 2000, test.at)
		api.Close()
		if c.Compared != 1 || c.Wrong > 0 != test.differs {
			t.Errorf("at %d, %s: %d answers compared, %d differ", test.at, test.says, c.Compared, c.Wrong)
		}
	}
}

// quiet takes the differences of a comparison that is expected to find some.
type quiet struct{ testing.TB }

func (*quiet) Errorf(string, ...any) {}
