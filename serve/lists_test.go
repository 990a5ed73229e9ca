package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/operate/lists"
	"github.com/weir-stream/weir/serve/tools"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/tables"
)

// listServer keeps lists as a topic and the processes that follow it do.
type listServer struct {
	http.Handler
	registry *features.Registry
	contents map[string]*tables.Contents
	writes   int
	broken   error
	log      strings.Builder
}

func newListServer(t testing.TB, client string) *listServer {
	s := &listServer{contents: map[string]*tables.Contents{}}
	s.registry = defined.Registry(t, `
streams:
  pay: {topic: pay, timestamp: at, fields: {card_id: string}}
tables:
  merchant: {topic: merchants, key: id, fields: {risk: string}}
lists:
  blocked_cards: {topic: weir.lists}
  accounts: {topic: weir.lists, type: int}
  vpn: {topic: weir.lists, type: network}
features:
  n: COUNT(1d, pay, card_id)
`)
	for _, list := range s.registry.Tables {
		s.contents[list.Name] = tables.New(list)
	}
	now := time.Date(2026, 8, 1, 9, 12, 44, 0, time.UTC)
	s.Handler = newHandler(&fakeReader{}, func(c *setup) {
		if client != "" {
			as(clientOf(t, client))(&c.Access)
		}
		c.Logger = slog.New(slog.NewJSONHandler(&s.log, nil))
		c.Now = func() time.Time { return now }
		c.Registry = func() *features.Registry { return s.registry }
		c.Tools = tools.Config{
			ListContents: func(list *features.Table) (*tables.Contents, error) { return s.contents[list.Name], s.broken },
			WriteList: func(_ context.Context, list *features.Table, changes []lists.Written) error {
				if s.writes++; s.broken != nil {
					return s.broken
				}
				for _, w := range changes {
					bad, err := s.contents[list.Name].Take(&record.Record{
						Key: w.Key, Value: w.Content, Timestamp: now.UnixMilli(), Partition: state.Partition{Topic: "weir.lists"}})
					if bad != nil || err != nil {
						return fmt.Errorf("%v, %w", bad, err)
					}
				}
				return nil
			},
		}
	})
	return s
}

// Who may change lists adds entries and removes them, under his own name, and everybody sees it.
func TestListsOverHTTP(t *testing.T) {
	s := newListServer(t, "ann lists")
	for _, step := range []struct{ method, target, body, want string }{
		{"GET", "/v1/lists/blocked_cards", "", `{"list":"blocked_cards","total":0,"entries":[]}`},
		{"POST", "/v1/lists/blocked_cards", `{"add": [{"value": "c1", "until": "2026-12-31", "why": "case 17"}, {"value": "c|2"}, {"value": "c3", "until": "1h"}]}`,
			`{"list":"blocked_cards","added":3,"removed":0}`},
		{"GET", "/v1/lists/blocked_cards", "", `{"list":"blocked_cards","total":3,"entries":[` +
			`{"value":"c1","since":"2026-08-01T09:12:44Z","until":"2027-01-01T00:00:00Z","who":"ann","why":"case 17"},` +
			`{"value":"c3","since":"2026-08-01T09:12:44Z","until":"2026-08-01T10:12:44Z","who":"ann"},` +
			`{"value":"c|2","since":"2026-08-01T09:12:44Z","who":"ann"}]}`},
		{"POST", "/v1/lists/blocked_cards", `{"add": [{"value": "c4"}], "remove": [{"value": "c1", "why": "closed"}, {"value": "none"}]}`,
			`{"list":"blocked_cards","added":1,"removed":2}`},
		{"GET", "/v1/lists/blocked_cards?limit=1", "", `{"list":"blocked_cards","total":3,"entries":[{"value":"c3","since":"2026-08-01T09:12:44Z","until":"2026-08-01T10:12:44Z","who":"ann"}]}`},
		{"GET", "/v1/lists/blocked_cards?value=c%7C2", "", `{"list":"blocked_cards","total":1,"entries":[{"value":"c|2","since":"2026-08-01T09:12:44Z","who":"ann"}]}`},
		{"GET", "/v1/lists/blocked_cards?value=c1", "", `{"list":"blocked_cards","total":0,"entries":[]}`},
		{"POST", "/v1/lists/accounts", `{"add": [{"value": 7}, {"value": "0008"}]}`, `{"list":"accounts","added":2,"removed":0}`},
		{"GET", "/v1/lists/accounts", "", `{"list":"accounts","total":2,"entries":[{"value":"7","since":"2026-08-01T09:12:44Z","who":"ann"},{"value":"8","since":"2026-08-01T09:12:44Z","who":"ann"}]}`},
		{"POST", "/v1/lists/vpn", `{"add": [{"value": "::ffff:10.0.0.0/104"}, {"value": "2001:DB8::1"}]}`, `{"list":"vpn","added":2,"removed":0}`},
		{"GET", "/v1/lists/vpn?value=2001:db8:0::1", "", `{"list":"vpn","total":1,"entries":[{"value":"2001:db8::1/128","since":"2026-08-01T09:12:44Z","who":"ann"}]}`},
		{"GET", "/v1/lists/vpn?value=10.0.0.0/8", "", `{"list":"vpn","total":1,"entries":[{"value":"10.0.0.0/8","since":"2026-08-01T09:12:44Z","who":"ann"}]}`},
	} {
		if w := askWithToken(t, s, step.method, step.target, step.body); w.Code != 200 || w.Body.String() != step.want+"\n" {
			t.Errorf("%s %s %s: %d\ngot  %swant %s", step.method, step.target, step.body, w.Code, w.Body, step.want)
		}
	}
	var line struct{ Msg, Client, Path string }
	for text := range strings.Lines(s.log.String()) {
		if err := json.Unmarshal([]byte(text), &line); err != nil || line.Client != "ann" || !strings.HasPrefix(line.Path, "/v1/lists/") {
			t.Errorf("the log has the line %s(%v)", text, err)
		}
	}
	if n := strings.Count(s.log.String(), `"msg":"an operator changes a list"`); n != 4 {
		t.Errorf("%d changes are logged, want 4:\n%s", n, &s.log)
	}
}

// What cannot be done is refused whole, and says why.
func TestBadChangesOfLists(t *testing.T) {
	s := newListServer(t, "ann lists")
	long, many := strings.Repeat("x", 5000), strings.Repeat(`{"value": "c"}, `, 1000)
	for _, test := range []struct {
		target, body string
		status       int
		want         string
	}{
		{"blocked_card", `{}`, 404, `{"code":"unknown_list","message":"there is no list \"blocked_card\"; did you mean \"blocked_cards\"?","nearest":"blocked_cards"}`},
		{"merchant", `{}`, 404, `{"code":"unknown_list","message":"\"merchant\" is a table, whose rows are not written here, and no list"}`},
		{"vpn", ``, 400, `{"code":"malformed_json","message":"the body is not one JSON object in UTF-8"}`},
		{"vpn", `[]`, 400, `{"code":"wrong_type","message":"the body must be an object; a list is not"}`},
		{"vpn", `{}`, 400, `{"code":"missing_key","message":"there is nothing to change: give entries to add or to remove"}`},
		{"vpn", `{"add": []}`, 400, `{"code":"missing_key","message":"there is nothing to change: give entries to add or to remove"}`},
		{"vpn", `{"ad": []}`, 400, `{"code":"unknown_key","message":"the body has no key \"ad\"; its keys are add and remove","key":"ad","nearest":"add"}`},
		{"vpn", `{"Add": []}`, 400, `{"code":"unknown_key","message":"the body has no key \"Add\"; its keys are add and remove","key":"Add","nearest":"add"}`},
		{"vpn", `{"add": [], "add": []}`, 400, `{"code":"duplicate_key","message":"key \"add\" appears twice in the body","key":"add"}`},
		{"vpn", `{"add": [null], "remove": null}`, 400, `{"code":"wrong_type","message":"add[0] must be an object; null is not"}`},
		{"vpn", `null`, 400, `{"code":"wrong_type","message":"the body must be an object; null is not"}`},
		{"vpn", `{"add": {}}`, 400, `{"code":"wrong_type","message":"add must be a list, not an object","key":"add"}`},
		{"vpn", `{"add": ["10.0.0.0/8"]}`, 400, `{"code":"wrong_type","message":"add[0] must be an object; \"10.0.0.0/8\" is not"}`},
		{"vpn", `{"add": [{}]}`, 400, `{"code":"missing_key","message":"add[0].value is missing","key":"add[0].value"}`},
		{"vpn", `{"add": [{"value": null}]}`, 400, `{"code":"missing_key","message":"add[0].value is missing","key":"add[0].value"}`},
		{"vpn", `{"add": [{"value": true}]}`, 400, `{"code":"wrong_type","message":"add[0].value must be a string or a whole number","key":"add[0].value"}`},
		{"vpn", `{"add": [{"value": "10.0.0.0/8", "unti": "1d"}]}`, 400,
			`{"code":"unknown_key","message":"add[0] has no key \"unti\"; its keys are value, until and why","key":"unti","nearest":"until"}`},
		{"vpn", `{"remove": [{"value": "10.0.0.0/8", "until": "1d"}]}`, 400,
			`{"code":"unknown_key","message":"remove[0] has no key \"until\"; its keys are value and why","key":"until"}`},
		{"vpn", `{"add": [{"value": "10.0.0.0/8", "why": 17}]}`, 400, `{"code":"wrong_type","message":"why must be a string, not a number","key":"why"}`},
		{"vpn", `{"add": [{"value": "10.0.0.0/8"}, {"value": "10.0.0.1/8"}]}`, 400,
			`{"code":"bad_entry","message":"add[1]: \"10.0.0.1/8\" has bits beyond its length: write 10.0.0.0/8","key":"add[1]"}`},
		{"vpn", `{"add": [{"value": "here"}]}`, 400,
			`{"code":"bad_entry","message":"add[0]: \"here\" is neither a network such as 10.0.0.0/8 or 2001:db8::/32 nor an address","key":"add[0]"}`},
		{"vpn", `{"add": [{"value": "10.1.1.1"}], "remove": [{"value": "10.1.1.1/32"}]}`, 400,
			`{"code":"bad_entry","message":"remove[0]: \"10.1.1.1/32\" is in add[0] too","key":"remove[0]"}`},
		{"accounts", `{"add": [{"value": 1.5}]}`, 400, `{"code":"bad_entry","message":"add[0]: \"1.5\" is not a whole number of 64 bits, as the values of list accounts are","key":"add[0]"}`},
		{"blocked_cards", "{\"add\": [{\"value\": \"\xff\"}]}", 400, `{"code":"malformed_json","message":"the body is not one JSON object in UTF-8"}`},
		{"blocked_cards", `{"add": [{"value": " c1"}]}`, 400,
			`{"code":"bad_entry","message":"add[0]: \" c1\" begins or ends with white space: leave that out","key":"add[0]"}`},
		{"blocked_cards", `{"add": [{"value": ""}]}`, 400, `{"code":"bad_entry","message":"add[0]: the value is empty","key":"add[0]"}`},
		{"blocked_cards", `{"add": [{"value": "c1", "until": "2020-01-01"}]}`, 400, `{"code":"bad_entry","message":"add[0]: until: 2020-01-01 has passed","key":"add[0]"}`},
		{"blocked_cards", `{"add": [{"value": "c1", "until": "soon"}]}`, 400,
			`{"code":"bad_entry","message":"add[0]: until: \"soon\" is neither a moment such as 2026-12-31T23:59:59Z, nor a day such as 2026-12-31, nor a time such as 30d","key":"add[0]"}`},
		{"blocked_cards", `{"add": [{"value": "` + long + `"}]}`, 400, `{"code":"bad_entry","message":"add[0]: the value has 5000 bytes, more than 256","key":"add[0]"}`},
		{"blocked_cards", `{"add": [{"value": "c1", "why": "` + long + `"}]}`, 400, `{"code":"bad_entry","message":"add[0]: the reason has 5000 bytes, more than 256","key":"add[0]"}`},
		{"blocked_cards", `{"add": [` + many + `{"value": "d"}]}`, 413, `{"code":"too_many_values","message":"1001 entries are more than the 1000 that one request may change"}`},
		{"blocked_cards", `{"add": [{"value": "` + strings.Repeat(long, 300) + `"}]}`, 413, `{"code":"body_too_large","message":"the body has more than 1048576 bytes"}`},
	} {
		w := askWithToken(t, s, "POST", "/v1/lists/"+test.target, test.body)
		if want := `{"error":` + test.want + "}\n"; w.Code != test.status || w.Body.String() != want {
			t.Errorf("%s %.80s: %d\ngot  %swant %s", test.target, test.body, w.Code, w.Body, want)
		}
	}
	if s.writes != 0 {
		t.Errorf("%d bad changes were written", s.writes)
	}
	for target, want := range map[string]string{
		"blocked_cards?limit=0":           `{"code":"out_of_range","message":"limit must be from 1 to 10000, not 0","key":"limit"}`,
		"blocked_cards?valu=c1":           `{"code":"unknown_key","message":"there is no parameter \"valu\"; use value or limit","key":"valu","nearest":"value"}`,
		"blocked_card?limit=1":            `{"code":"unknown_list","message":"there is no list \"blocked_card\"; did you mean \"blocked_cards\"?","nearest":"blocked_cards"}`,
		"blocked_cards?value=+4915112345": `{"code":"malformed_query","message":"parameter \"value\" begins with a space: in a URL + is written %2B, and a space %20","key":"value"}`,
	} {
		w := askWithToken(t, s, "GET", "/v1/lists/"+target, "")
		if w.Body.String() != `{"error":`+want+"}\n" {
			t.Errorf("%s: %d\ngot  %swant %s", target, w.Code, w.Body, want)
		}
	}
}

// A change that Kafka does not take is a 503, and so is a list that is not read yet.
func TestListsWithoutKafka(t *testing.T) {
	s := newListServer(t, "ann lists")
	s.broken = errors.New("topic weir.lists: no broker can be reached")
	for _, test := range []struct{ method, body, want string }{
		{"POST", `{"add": [{"value": "c1"}]}`, `{"error":{"code":"kafka_unavailable","message":"list blocked_cards could not be changed: topic weir.lists: no broker can be reached; ` +
			`send it again: either all of it counts by then, or nothing"}}`},
		{"GET", "", `{"error":{"code":"kafka_unavailable","message":"topic weir.lists: no broker can be reached"}}`},
	} {
		if w := askWithToken(t, s, test.method, "/v1/lists/blocked_cards", test.body); w.Code != 503 || w.Body.String() != test.want+"\n" || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d\ngot  %swant %s", test.method, w.Code, w.Body, test.want)
		}
	}
	s.broken = lists.ErrTooLarge
	want := `{"error":{"code":"too_many_values","message":"the changes have more than 900 KiB together: make fewer at once"}}` + "\n"
	if w := askWithToken(t, s, "POST", "/v1/lists/blocked_cards", `{"add": [{"value": "c1"}]}`); w.Code != 413 || w.Body.String() != want {
		t.Errorf("got  %swant %s", w.Body, want)
	}
}

// Lists take their scope, and a change takes a name.
func TestWhoMayChangeLists(t *testing.T) {
	const body = `{"add": [{"value": "c1"}]}`
	for client, want := range map[string]string{
		"ann query operator author metrics": `{"error":{"code":"forbidden","message":"asking for /v1/lists/blocked_cards takes the scope lists; you have query metrics author operator"}}`,
		"ann service:risk":                  `{"error":{"code":"forbidden","message":"asking for /v1/lists/blocked_cards takes the scope lists; you have service:risk"}}`,
	} {
		s := newListServer(t, client)
		for _, method := range []string{"GET", "POST"} {
			if w := askWithToken(t, s, method, "/v1/lists/blocked_cards", body); w.Code != 403 || w.Body.String() != want+"\n" || s.writes != 0 {
				t.Errorf("%s of %s: %d %swant %s", method, client, w.Code, w.Body, want)
			}
		}
	}
	if w := do(t, newListServer(t, "ann lists"), "POST", "/v1/lists/blocked_cards", body); w.Code != 401 {
		t.Errorf("without a token: %d %s", w.Code, w.Body)
	}
	s := newListServer(t, "")
	want := `{"error":{"code":"forbidden","message":"lists keep who changed them: set api.tokens_file, api.oidc or api.tls.client_ca, or use weir list"}}` + "\n"
	if w := do(t, s, "POST", "/v1/lists/blocked_cards", body); w.Code != 403 || w.Body.String() != want || s.writes != 0 {
		t.Errorf("without credentials: %d %swant %s", w.Code, w.Body, want)
	}
	if w := do(t, s, "GET", "/v1/lists/blocked_cards", ""); w.Code != 200 {
		t.Errorf("without credentials: %d %s", w.Code, w.Body)
	}
	if w := do(t, s, "PUT", "/v1/lists/blocked_cards", ""); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("PUT: %d %s, Allow %s", w.Code, w.Body, w.Header().Get("Allow"))
	}
}

// FuzzListChanges changes a list by any body: it is made whole, or refused without a trace.
func FuzzListChanges(f *testing.F) {
	f.Add("vpn", `{"add": [{"value": "10.0.0.0/8", "until": "30d", "why": "x"}], "remove": [{"value": "::1"}]}`)
	f.Add("accounts", `{"add": [{"value": 7}, {"value": -1e300}], "remove": null}`)
	f.Add("blocked_cards", `{"Add": [{"value": "c", "until": "9999-12-31", "until": null}], "add": [null, []]}`)
	f.Add("vpn", `{"Add": [{"vAlue": 0}], "remove": null}`)
	f.Add("vpn", `{"add": [{"value": "::2", "until": null, "why": null}], "remove": null}`)
	s := newListServer(f, "ann lists")
	f.Fuzz(func(t *testing.T, name, body string) {
		s.writes = 0
		s.log.Reset()
		w := askWithToken(t, s, "POST", "/v1/lists/"+url.PathEscape(name), body)
		if w.Code >= 500 || (w.Code == 200) != (s.writes == 1) {
			t.Fatalf("%d %s after %d writes\n%s", w.Code, w.Body, s.writes, &s.log)
		}
	})
}
