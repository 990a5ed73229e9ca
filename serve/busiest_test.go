package serve

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/state"
)

func busiestOf(since int64, key string, entities ...state.BusyEntity) state.Busiest {
	return state.Busiest{Since: since, Keys: []state.BusiestKey{{Key: key, Entities: entities}}}
}

// The busiest entities are summed over all processors, and named as questions name them.
func TestBusiest(t *testing.T) {
	hashed := busiestOf(5, "device_id", state.BusyEntity{Entity: "mXlKy3uAUbPpe2HvZ4rDQw", Events: 1})
	hashed.Hashed = true
	for _, test := range []struct {
		name    string
		counted []state.Busiest
		want    string
	}{
		{"of no processor", nil, `{"busiest":[],"since":0}`},
		{
			"of two",
			[]state.Busiest{
				busiestOf(7, "device_id", state.BusyEntity{Entity: "d1", Events: 4, Error: 1}, state.BusyEntity{Entity: `a\|b\\`, Events: 3}),
				busiestOf(6, "device_id", state.BusyEntity{Entity: "d1", Events: 5}),
			},
			`{"busiest":[{"key":"device_id","entities":[{"entity":"d1","events":9,"error":1},{"entity":"a|b\\","events":3,"error":0}],"rest":0}],"since":6}`,
		},
		{"hashed", []state.Busiest{hashed}, `{"busiest":[{"key":"device_id","entities":[{"entity":"mXlKy3uAUbPpe2HvZ4rDQw","events":1,"error":0}],"rest":0}],"since":5,"hashed":true}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := do(t, newHandler(&fakeReader{busiest: test.counted}, nil), "GET", "/v1/busiest", "")
			if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != test.want {
				t.Errorf("%d\ngot  %s\nwant %s", w.Code, got, test.want)
			}
		})
	}
}

// Only the first 20 of a key are shown, and the most events that any other entity has had.
func TestBusiestAreLimited(t *testing.T) {
	counted := busiestOf(1, "device_id")
	for i := range int64(30) {
		counted.Keys[0].Entities = append(counted.Keys[0].Entities, state.BusyEntity{Entity: fmt.Sprint("d", i), Events: 100 - i})
	}
	body := do(t, newHandler(&fakeReader{busiest: []state.Busiest{counted}}, nil), "GET", "/v1/busiest", "").Body.String()
	if strings.Count(body, `"entity"`) != 20 || !strings.Contains(body, `"rest":80`) {
		t.Errorf("got %s, want 20 entities and a rest of 80", body)
	}
}

func TestBusiestOfAnUnavailableStore(t *testing.T) {
	w := do(t, newHandler(&fakeReader{err: errors.New("away")}, nil), "GET", "/v1/busiest", "")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"code":"store_unavailable"`) {
		t.Errorf("got %d %s, want 503 store_unavailable", w.Code, w.Body)
	}
}

// Clients that may ask about everything may see the busiest entities, and the log counts them.
func TestBusiestTakeTheScopeQuery(t *testing.T) {
	for client, want := range map[string]int{"a operator": 200, "a": 200, "a query": 403, "a author": 403, "a service:payment_risk": 403} {
		var log bytes.Buffer
		audit := &access.Audit{}
		counted := busiestOf(1, "device_id", state.BusyEntity{Entity: "d1", Events: 4}, state.BusyEntity{Entity: "d2", Events: 3})
		h := newHandler(&fakeReader{busiest: []state.Busiest{counted}}, func(c *setup) {
			as(clientOf(t, client))(&c.Access)
			c.Access.Audit = audit
		})
		w := askWithToken(t, h, "GET", "/v1/busiest", "")
		if w.Code != want {
			t.Errorf("%s: got %d %s, want %d", client, w.Code, w.Body, want)
		}
		if refusal := `{"error":{"code":"forbidden","message":"asking for /v1/busiest takes the scope operator; you have ` + client[min(2, len(client)):]; want == 403 && !strings.HasPrefix(w.Body.String(), refusal) {
			t.Errorf("%s: %s, want %s", client, w.Body, refusal)
		}
		if audit.Flush(logTo(&log), noon); want == 200 && !strings.Contains(log.String(), " client=a questions=1 refused=0 entities=2 values=2 ") {
			t.Errorf("%s: the audit log is %q, want one question about two entities", client, &log)
		}
	}
}
