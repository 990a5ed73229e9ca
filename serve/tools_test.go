package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/operate/preview"
	"github.com/weir-stream/weir/serve/tools"
	"github.com/weir-stream/weir/state"
)

// inUse are the definitions of a process whose authors write others.
var inUse = features.Files{Definitions: []features.File{
	{Path: "streams.yaml", Text: "streams:\n  pay: {topic: payments, timestamp: at, fields: {user: string, amount: decimal}}\n"},
	{Path: "users.yaml", Text: "features:\n  paid_1h: SUM(1h, pay, amount, user)\n"},
	{Path: "services.yaml", Text: "services:\n  risk: [paid_1h]\n"},
}}

// isNew is what a preview says of a feature that comes.
const isNew = `"effects":[{"feature":"n_1h","loses":false,"effect":"new, from nothing: complete once it is filled, or after 1h"}],`

// withTools serves these definitions.
func withTools(c tools.Config) http.Handler {
	return newHandler(&fakeReader{}, func(s *setup) {
		r, err := definition.LoadFiles(inUse)
		if err != nil {
			panic(err)
		}
		s.Registry, s.Tools = func() *features.Registry { return r }, c
	})
}

// draft is a body of POST /v1/preview.
func draft(file, text string) string {
	body, err := json.Marshal(map[string]string{"file": file, "text": text})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// A file is checked with the others, or in place of its earlier text.
func TestPreviewChecksAFile(t *testing.T) {
	asked := func(_ context.Context, _ *features.Registry, list []*features.Feature, since time.Time) (*preview.Report, error) {
		return nil, fmt.Errorf("%d asked since %s", len(list), since.Format(time.TimeOnly))
	}
	for _, test := range []struct{ name, body, want string }{
		{"another file", draft("new.yaml", "features: {n_1h: 'COUNT(1h, pay, user)'}"),
			`{"findings":[],"features":["n_1h"],` + isNew + `"no_preview":"1 asked since 11:50:00"}`},
		{"one of no name, for other minutes", `{"text":"features: {n_1h: 'COUNT(1h, pay, user)'}","minutes":60,"file":null}`,
			`{"findings":[],"features":["n_1h"],` + isNew + `"no_preview":"1 asked since 11:00:00"}`},
		{"one in use", draft("users.yaml", "features:\n  paid_1h: SUM(1h, pay, amount, user)\n  n_1h: COUNT(1h, pay, user)\n"),
			`{"findings":[],"features":["n_1h","paid_1h"],` + isNew + `"no_preview":"2 asked since 11:50:00"}`},
		{"a longer window in use, with tiles of another width", draft("users.yaml", "features:\n  paid_1h: SUM(1d, pay, amount, user)\n"),
			`{"findings":[],"features":["paid_1h"],"effects":[{"feature":"paid_1h","services":["risk"],"loses":false,` +
				`"effect":"answers from its tiles of 1m, which reach back 1h: complete once it is filled, or after 1d"}],` +
				`"no_preview":"1 asked since 11:50:00"}`},
		{"no feature", draft("streams.yaml", inUse.Definitions[0].Text+"\n"), `{"findings":[],"features":[],"no_preview":"the file defines no feature"}`},
		{"mistakes, as weir validate finds them", draft("new.yaml", "features:\n  paid_1h: COUNT(1h, pay, user)\n  n: COUNT(1h, pey, user)\n"), `{"findings":[` +
			`{"file":"new.yaml","line":2,"column":3,"message":"duplicate feature \"paid_1h\"; it is already defined at users.yaml:2:3"},` +
			`{"file":"new.yaml","line":3,"column":16,"message":"unknown stream \"pey\"; did you mean \"pay\"?"}],"features":["n","paid_1h"]}`},
		{"mistakes elsewhere", draft("streams.yaml", "streams: {}"), `{"findings":[` +
			`{"file":"users.yaml","line":2,"column":20,"message":"unknown stream \"pay\""}],"features":[]}`},
		{"no YAML", draft("a.yaml", "features: [}"), `{"findings":[{"file":"a.yaml","line":1,"column":1,"message":"bad YAML: did not find expected node content; close the brackets or braces, and quote a text that contains any of , [ ] { }"}],"features":[]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := do(t, withTools(tools.Config{Preview: asked}), "POST", "/v1/preview", test.body)
			if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != test.want {
				t.Errorf("%d\ngot  %s\nwant %s", w.Code, got, test.want)
			}
		})
	}
}

// Definitions that come by HTTP cannot name files of the server's machine.
func TestPreviewReadsNoFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.proto")
	if err := os.WriteFile(path, []byte(`syntax = "proto3"; message A { string user = 1; }`), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "streams: {p: {topic: p, timestamp: at, format: {type: protobuf, schema: " + path + ", message: A}, fields: {user: string}}}"
	w := do(t, withTools(tools.Config{}), "POST", "/v1/preview", draft("a.yaml", text))
	if want := "a.proto: file does not exist"; !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %s\nwant it to contain %s", w.Body, want)
	}
}

// A right file has a preview, or it is said why not.
func TestPreviewAnswers(t *testing.T) {
	const counted = `{"text":"features: {n_1h: 'COUNT(1h, pay, user)'}"}`
	report := &preview.Report{Since: 1, At: 2, Records: 3, Events: 3, SetAside: []preview.SetAside{{Reason: "missing_field", Records: 1, First: []string{"payments/0 at offset 7"}}}, Streams: []cost.Stream{{
		Name: "pay", Topics: []string{"payments"}, Entities: 1, Filters: 1, Mutations: 2, RememberIDs: "10m", Enrich: &cost.Enrichment{Service: "s", Topic: "out", Format: "json"},
	}}, Features: []preview.Feature{{
		Name: "n_1h", Definition: "COUNT(1h, pay, user)", By: []string{"user"}, Entities: 1, Asked: 1, Keys: 1, RoundTrips: 1,
		Numbers:  &preview.Distribution{Min: json.RawMessage("1"), P50: json.RawMessage("1"), P90: json.RawMessage("1"), P99: json.RawMessage("1"), Max: json.RawMessage("1")},
		Examples: []preview.Example{{Entity: "user=u1", Events: 3, Answer: json.RawMessage(`{"value":3,"status":"PRESENT","from":0,"to":2,"exact":true}`)}},
	}}}
	gives := func(report *preview.Report, err error) tools.Config {
		return tools.Config{Preview: func(context.Context, *features.Registry, []*features.Feature, time.Time) (*preview.Report, error) {
			return report, err
		}}
	}
	for _, test := range []struct {
		name  string
		tools tools.Config
		want  string
	}{
		{"a report", gives(report, nil), `"preview":{"since":1,"at":2,"records":3,`},
		{"no record", gives(&preview.Report{}, nil), `"no_preview":"the topics have no record of the last 10 minutes"`},
		{"Kafka is away", gives(nil, errors.New("topic payments: nothing listens at kafka:9092")), `"no_preview":"topic payments: nothing listens at kafka:9092"`},
		{"a process that reads no topics", tools.Config{}, `"no_preview":"this process does not read Kafka; ask one with the role processor"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := do(t, withTools(test.tools), "POST", "/v1/preview", counted)
			if !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("got %s\nwant it to contain %s", w.Body, test.want)
			}
		})
	}
	huge := *report
	huge.Features = []preview.Feature{{Definition: strings.Repeat("x", 5<<20)}}
	want := `{"error":{"code":"answer_too_large","message":"the preview has more than 4194304 bytes; preview fewer features at a time"}}` + "\n"
	if w := do(t, withTools(gives(&huge, nil)), "POST", "/v1/preview", counted); w.Code != 413 || w.Body.String() != want {
		t.Errorf("got %d %.200s, want 413 %s", w.Code, w.Body, want)
	}
}

// Only one request reads Kafka or walks through the store at a time, and for no longer than the limit.
func TestToolsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withTools(tools.Config{
			Preview: func(ctx context.Context, _ *features.Registry, _ []*features.Feature, _ time.Time) (*preview.Report, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			DeadLetters: func(ctx context.Context, _ string, _ int) ([]tools.DeadLetter, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			LongestKeys: func(ctx context.Context, _ int, patience time.Duration) (state.LongKeys, error) {
				if patience >= tools.Limit {
					t.Errorf("a patience of %v, want less than the limit", patience)
				}
				<-ctx.Done()
				return state.LongKeys{}, ctx.Err()
			},
		})
		for _, test := range []struct{ method, path, body, busy, late string }{
			{"POST", "/v1/preview", `{"text":"features: {n_1h: 'COUNT(1h, pay, user)'}"}`,
				`{"error":{"code":"overloaded","message":"another preview is under way; ask again in some seconds"}}`,
				`{"findings":[],"features":["n_1h"],` + isNew + `"no_preview":"it took more than 10s: preview fewer minutes, or use weir preview"}`},
			{"GET", "/v1/dead-letters", "",
				`{"error":{"code":"overloaded","message":"dead letters are being read for another request; ask again in some seconds"}}`,
				`{"error":{"code":"kafka_unavailable","message":"the dead letters could not be read within 10s"}}`},
			{"GET", "/v1/greatest-keys", "",
				`{"error":{"code":"overloaded","message":"keys are being looked at for another request; ask again in some seconds"}}`,
				`{"error":{"code":"store_unavailable","message":"the keys cannot be read: context deadline exceeded"}}`},
		} {
			first, began := make(chan string), time.Now()
			go func() { first <- do(t, h, test.method, test.path, test.body).Body.String() }()
			synctest.Wait()
			if w := do(t, h, test.method, test.path, test.body); w.Code != 503 || w.Header().Get("Retry-After") == "" || w.Body.String() != test.busy+"\n" {
				t.Errorf("got %d %s, want 503 %s", w.Code, w.Body, test.busy)
			}
			if got := <-first; got != test.late+"\n" || time.Since(began) != tools.Limit {
				t.Errorf("after %v: %s, want %s", time.Since(began), got, test.late)
			}
		}
	})
}

func TestMalformedDrafts(t *testing.T) {
	h := withTools(tools.Config{})
	for _, test := range []struct{ body, want string }{
		{``, `{"error":{"code":"malformed_json","message":"the body is not one JSON object in UTF-8"}}`},
		{`{"text":""} {}`, `{"error":{"code":"malformed_json","message":"the body is not one JSON object in UTF-8"}}`},
		{`{"text":""}}`, `{"error":{"code":"malformed_json","message":"the body is not one JSON object in UTF-8"}}`},
		{"{\"text\":\"\xff\"}", `{"error":{"code":"malformed_json","message":"the body is not one JSON object in UTF-8"}}`},
		{`[]`, `{"error":{"code":"wrong_type","message":"the body must be an object; a list is not"}}`},
		{`{"text":1}`, `{"error":{"code":"wrong_type","message":"text must be a string, not a number","key":"text"}}`},
		{`{"text":"","minutes":1.5}`, `{"error":{"code":"wrong_type","message":"minutes must be a whole number, not 1.5","key":"minutes"}}`},
		{`{"Text":""}`, `{"error":{"code":"unknown_key","message":"the body has no key \"Text\"; its keys are file, text and minutes","key":"Text","nearest":"text"}}`},
		{`{"txt":""}`, `{"error":{"code":"unknown_key","message":"the body has no key \"txt\"; its keys are file, text and minutes","key":"txt","nearest":"text"}}`},
		{`{"file":"a.yaml"}`, `{"error":{"code":"missing_key","message":"text is missing: the definitions of the file"}}`},
		{`{"text":null}`, `{"error":{"code":"missing_key","message":"text is missing: the definitions of the file"}}`},
		{`{"text":"","minutes":0}`, `{"error":{"code":"out_of_range","message":"minutes must be from 1 to 60, not 0","key":"minutes"}}`},
		{`{"text":"","minutes":61}`, `{"error":{"code":"out_of_range","message":"minutes must be from 1 to 60, not 61","key":"minutes"}}`},
		{draft("", strings.Repeat("#", 1<<20)), `{"error":{"code":"body_too_large","message":"the body has more than 1048576 bytes"}}`},
	} {
		if w := do(t, h, "POST", "/v1/preview", test.body); w.Code < 400 || w.Code >= 500 || w.Body.String() != test.want+"\n" {
			t.Errorf("%.60s: %d\ngot  %swant %s", test.body, w.Code, w.Body, test.want)
		}
	}
}

// Dead letters are shown with the beginning of their records, as text or as bytes.
func TestDeadLetters(t *testing.T) {
	var asked string
	long := strings.Repeat("é", 3000)
	h := withTools(tools.Config{DeadLetters: func(_ context.Context, reason string, most int) ([]tools.DeadLetter, error) {
		asked = fmt.Sprint(reason, " ", most)
		return []tools.DeadLetter{
			{At: "dead/0/7", Source: "payments/1/40", SetAside: 2, Timestamp: 1, Reason: "wrong_type", Message: "amount is <true>", Stream: "pay",
				Key: tools.ContentOf([]byte("k")), Value: tools.ContentOf([]byte("a" + long))},
			{At: "dead/0/6", Source: "payments/1/39", Reason: "malformed", Replayed: true, Key: tools.ContentOf(nil), Value: tools.ContentOf([]byte{0, 0xff})},
		}, nil
	}})
	want := `{"dead_letters":[` +
		`{"at":"dead/0/7","source":"payments/1/40","set_aside":2,"timestamp":1,"reason":"wrong_type","message":"amount is <true>","stream":"pay","replayed":false,"sealed":false,` +
		`"key":{"bytes":1,"text":"k"},"value":{"bytes":6001,"text":"a` + long[:2*2047] + `"}},` +
		`{"at":"dead/0/6","source":"payments/1/39","set_aside":0,"timestamp":0,"reason":"malformed","message":"","replayed":true,"sealed":false,"value":{"bytes":2,"base64":"AP8="}}]}` + "\n"
	for target, wanted := range map[string]string{
		"/v1/dead-letters":                            " 10",
		"/v1/dead-letters?reason=wrong_type&limit=3":  "wrong_type 3",
		"/v1/dead-letters?limit=100&reason=malformed": "malformed 100",
	} {
		w := do(t, h, "GET", target, "")
		if diff := cmp.Diff(want, w.Body.String()); diff != "" || asked != wanted {
			t.Errorf("asked for %q, want %q; (-want +got):\n%s", asked, wanted, diff)
		}
	}
	none := withTools(tools.Config{DeadLetters: func(context.Context, string, int) ([]tools.DeadLetter, error) { return nil, nil }})
	if w := do(t, none, "GET", "/v1/dead-letters", ""); w.Body.String() != `{"dead_letters":[]}`+"\n" {
		t.Errorf("without dead letters: got %s", w.Body)
	}
}

func TestDeadLettersThatAreNotRead(t *testing.T) {
	here := tools.Config{DeadLetters: func(context.Context, string, int) ([]tools.DeadLetter, error) {
		return nil, errors.New("nothing listens at kafka:9092")
	}}
	for _, test := range []struct {
		tools  tools.Config
		query  string
		status int
		want   string
	}{
		{here, "", 503, `{"error":{"code":"kafka_unavailable","message":"the dead letters cannot be read: nothing listens at kafka:9092"}}`},
		{tools.Config{}, "", 421, `{"error":{"code":"no_processor","message":"this process does not read Kafka; ask one with the role processor"}}`},
		{here, "?reason=wrong_typ", 404, `{"error":{"code":"unknown_reason","message":"there is no reason \"wrong_typ\"; did you mean \"wrong_type\"?","nearest":"wrong_type"}}`},
		{here, "?limit=0", 400, `{"error":{"code":"out_of_range","message":"limit must be from 1 to 100, not 0","key":"limit"}}`},
		{here, "?limit=101", 400, `{"error":{"code":"out_of_range","message":"limit must be from 1 to 100, not 101","key":"limit"}}`},
		{here, "?limit=all", 400, `{"error":{"code":"wrong_type","message":"limit must be a whole number, not \"all\""}}`},
		{here, "?limit=1&limit=2", 400, `{"error":{"code":"duplicate_key","message":"limit is given twice"}}`},
		{here, "?reasons=late", 400, `{"error":{"code":"unknown_key","message":"there is no parameter \"reasons\"; use reason or limit","key":"reasons","nearest":"reason"}}`},
		{here, "?limit=%", 400, `{"error":{"code":"malformed_query","message":"the query cannot be read: invalid URL escape \"%\""}}`},
	} {
		if w := do(t, withTools(test.tools), "GET", "/v1/dead-letters"+test.query, ""); w.Code != test.status || w.Body.String() != test.want+"\n" {
			t.Errorf("%s: %d\ngot  %swant %s", test.query, w.Code, w.Body, test.want)
		}
	}
}
