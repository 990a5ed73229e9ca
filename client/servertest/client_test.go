// Package servertest tests the Go client against a server. They are separate modules: the client
// must add no dependencies for its users, so its own tests cannot import the server.
package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-stream/weir/client"
	"github.com/weir-stream/weir/features/query"
)

func TestValuesOfEveryShape(t *testing.T) {
	weir := client.New(startServer())
	answer, err := weir.Query(t.Context(), client.Question{
		Features: []string{
			"device_tx_7d", "device_users_30d", "user_abroad", "user_avg_1d", "user_countries", "user_country", "user_ever", "user_merchants",
		},
		Entities: []client.Entity{{"device_id": "d000001", "user_id": "u000001"}},
		At:       now,
	})
	if err != nil {
		t.Fatal(err)
	}
	f := answer.Results[0].Features
	if n, ok := f["device_tx_7d"].Int(); n != 3 || !ok {
		t.Errorf("device_tx_7d: %d %v, want 3", n, ok)
	}
	if x, ok := f["user_avg_1d"].Float(); x != 33.25 || !ok {
		t.Errorf("user_avg_1d: %v %v, want 33.25", x, ok)
	}
	if s, ok := f["user_country"].String(); s != "FR" || !ok {
		t.Errorf("user_country: %q %v, want FR", s, ok)
	}
	if b, ok := f["user_abroad"].Bool(); b || !ok {
		t.Errorf("user_abroad: %v %v, want false", b, ok)
	}
	var merchants []string
	list, ok := f["user_merchants"].List()
	for _, v := range list {
		s, _ := v.String()
		merchants = append(merchants, s)
	}
	if diff := cmp.Diff([]string{"m000001", "m000002"}, merchants); diff != "" || !ok {
		t.Errorf("user_merchants (-want +got):\n%s", diff)
	}
	counts, ok := f["user_countries"].Counts()
	if len(counts) != 2 || !ok {
		t.Fatalf("user_countries: %v %v, want two countries", counts, ok)
	}
	if s, _ := counts[0].Value.String(); s != "DE" || counts[0].Count != 2 {
		t.Errorf("user_countries begins with %s, %d times; want DE twice", s, counts[0].Count)
	}

	week := f["device_tx_7d"]
	if !answer.At.Equal(now) || !week.To.Equal(now) || !week.From.Equal(time.Date(2026, 7, 19, 0, 0, 0, 0, time.UTC)) || !week.Exact {
		t.Errorf("unexpected coverage of device_tx_7d: from %v to %v at %v, exact %v", week.From, week.To, answer.At, week.Exact)
	}
	if !f["user_ever"].From.IsZero() || !week.CompleteSince.IsZero() || !week.Oldest.IsZero() {
		t.Errorf("a lifetime begins at %v, complete since %v, oldest %v; want none of them", f["user_ever"].From, week.CompleteSince, week.Oldest)
	}
	if f["device_users_30d"].StandardError == 0 {
		t.Error("the estimate device_users_30d has no standard error")
	}
	if got := string(answer.Results[0].Entity); got != `{"device_id":"d000001","user_id":"u000001"}` {
		t.Errorf("unexpected entity %s", got)
	}
}

func TestMetadata(t *testing.T) {
	var got client.Feature
	if err := json.Unmarshal([]byte(`{"value":null,"status":"OUTSIDE_MAX_AGE","from":1,"to":2,"exact":false,"standard_error":0.5,"relative_error":0.01,`+
		`"false_positive_rate":0.25,"uncertain":3,"capped":true,"later_events":true,"complete_since":4,"complete_at":6,"filled":0.5,"oldest":5,"later":"unknown"}`), &got); err != nil {
		t.Fatal(err)
	}
	ms := func(n int64) time.Time { return time.UnixMilli(n).UTC() }
	filled := 0.5
	want := client.Feature{
		Status: client.OutsideMaxAge, From: ms(1), To: ms(2), StandardError: 0.5, RelativeError: 0.01, FalsePositiveRate: 0.25, Uncertain: 3, Capped: true, LaterEvents: true,
		CompleteSince: ms(4), CompleteAt: ms(6), Filled: &filled, Oldest: ms(5),
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b client.Value) bool { return a.IsNull() && b.IsNull() })); diff != "" {
		t.Errorf("feature (-want +got):\n%s", diff)
	}
}

func TestPendingOutcomes(t *testing.T) {
	weir := client.New(startServer())
	answer, err := weir.Query(t.Context(), client.Question{
		Features: []string{"device_tx_7d"}, Entities: []client.Entity{{"device_id": "d000001"}},
		Pending: []client.Event{{Stream: "transaction", Event: json.RawMessage(`{"id":"a","time":1784980800000,"device_id":"d000001"}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []client.Outcome{{Stream: "transaction", Time: now}}
	if diff := cmp.Diff(want, answer.Pending); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	if n, _ := answer.Results[0].Features["device_tx_7d"].Int(); n != 4 {
		t.Errorf("%d transactions, want 4", n)
	}
}

func TestWaitFor(t *testing.T) {
	weir := client.New(startServer())
	for _, test := range []struct {
		record        client.Record
		want, nothing bool
	}{
		{client.Record{Topic: "transactions", Offset: 2}, true, false},
		{client.Record{Topic: "transactions", Offset: 3, Timeout: time.Millisecond}, false, false},
		{client.Record{Topic: "transactions", Partition: 1, Offset: 2, Timeout: time.Millisecond}, false, true},
	} {
		answer, err := weir.Query(t.Context(), client.Question{
			Features: []string{"device_tx_7d"}, Entities: []client.Entity{{"device_id": "d000001"}}, WaitFor: &test.record,
		})
		if err != nil || answer.Applied != test.want || answer.NothingApplied != test.nothing {
			t.Errorf("%+v: %+v, %v; want applied %v, nothing applied %v", test.record, answer, err, test.want, test.nothing)
		}
	}
}

// Members are listed also where there is no answer, and are then not known.
func TestMembers(t *testing.T) {
	weir := client.New(startServer())
	answer, err := weir.Query(t.Context(), client.Question{
		Features: []string{"user_merchant_seen"}, Entities: []client.Entity{{"user_id": "u000001"}, {"user_id": nil}}, Members: []any{"m000001", "m000009"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range answer.Results {
		f := r.Features["user_merchant_seen"]
		got = append(got, fmt.Sprint(f.Known()))
		for _, m := range f.Members {
			merchant, _ := m.Member.String()
			got = append(got, fmt.Sprint(merchant, " ", string(m.Met.JSON()), " ", m.Status, " ", m.Known()))
		}
	}
	want := []string{
		"true", "m000001 true PRESENT true", "m000009 false PRESENT true",
		"false", "m000001 null NOT_FOUND false", "m000009 null NOT_FOUND false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestStaleness(t *testing.T) {
	lag, none := 34*time.Millisecond, time.Duration(0)
	for body, want := range map[string]client.Answer{
		`{"at":1784980800000,"read_from":"replica","staleness_ms":12,"table_lag_ms":34}`: {At: now, Replica: true, Staleness: 12 * time.Millisecond, TableLag: &lag},
		`{"at":1784980800000,"table_lag_ms":0}`:                                          {At: now, TableLag: &none},
		`{"at":1784980800000,"read_from":"master"}`:                                      {At: now},
		`{"at":1784980800000}`:                                                           {At: now},
	} {
		var got client.Answer
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func TestRefusals(t *testing.T) {
	weir := client.New(startServer())
	entities := []client.Entity{{"device_id": "d000001"}}
	zero := 0
	for _, test := range []struct {
		name     string
		question client.Question
		want     client.Error
		text     string
	}{
		{
			"a key too few", client.Question{Features: []string{"user_ever"}, Entities: entities},
			client.Error{
				Status: 400, Code: client.MissingKey, Message: `entity 0 has no key "user_id" (string), which feature "user_ever" needs`,
				Feature: "user_ever", Key: "user_id", Entity: &zero,
			},
			`weir: entity 0 has no key "user_id" (string), which feature "user_ever" needs (missing_key)`,
		},
		{
			"no entities", client.Question{Features: []string{"user_ever"}},
			client.Error{Status: 400, Code: client.MissingEntities, Message: "entities must not be empty"},
			"weir: entities must not be empty (missing_entities)",
		},
		{
			"members of a feature that has none", client.Question{
				Features: []string{"device_tx_7d"}, Entities: entities, MembersOf: map[string][]any{"device_tx_7d": {"a"}},
			},
			client.Error{
				Status: 400, Code: client.NoMembers, Feature: "device_tx_7d", Key: "members",
				Message: `feature "device_tx_7d" cannot be asked about members; name the features that can: "members": {"FEATURE": ["a"]}`,
			},
			`weir: feature "device_tx_7d" cannot be asked about members; name the features that can: "members": {"FEATURE": ["a"]} (no_members)`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := weir.Query(t.Context(), test.question)
			var got *client.Error
			if !errors.As(err, &got) {
				t.Fatalf("the error is %v, want a client.Error", err)
			}
			if diff := cmp.Diff(test.want, *got); diff != "" || err.Error() != test.text {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	_, err := weir.Query(t.Context(), client.Question{Members: []any{1}, MembersOf: map[string][]any{"a": {1}}})
	if want := "weir: a question has either Members or MembersOf, not both"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A response of another server is an error that says so.
func TestOtherServers(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"a proxy", 502, "<html>", "weir: the server answered 502 Bad Gateway, but not as Weir does"},
		{"a redirect to HTTPS", 301, "", "weir: the server answered 301 Moved Permanently, but not as Weir does"},
		{"no JSON", 200, "<html>", "weir: the answer cannot be read: invalid character '<' looking for beginning of value"},
		{"an answer too few", 200, `{"at":1,"results":[]}`, "weir: 1 entities were asked about, but 0 are answered"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/v1/features")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			_, err := client.New(server.URL).Feature(t.Context(), "f", client.Entity{})
			if err == nil || err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	var got []string
	h := handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	ask := func(options ...client.Option) error {
		_, err := client.New(server.URL+"/", options...).Feature(t.Context(), "device_tx_7d", client.Entity{"device_id": "d"})
		return err
	}
	expired := errors.New("expired")
	none := func(context.Context) (string, error) { return "", expired }
	if err := errors.Join(ask(), ask(client.WithToken("secret\n"))); err != nil {
		t.Fatal(err)
	}
	if err := ask(client.WithTokens(none)); !errors.Is(err, expired) || err.Error() != "weir: the token: expired" {
		t.Errorf("without a token: got error %v", err)
	}
	if diff := cmp.Diff([]string{"", "Bearer secret"}, got); diff != "" {
		t.Errorf("Authorization (-want +got):\n%s", diff)
	}
}

// The client knows the codes of the API's contract.
func TestCodes(t *testing.T) {
	want := codesIn(t, "../../serve/openapi.yaml", `- \{const: (\w+), description: '\d`)
	if diff := cmp.Diff(want, codesIn(t, "../../client/errors.go", `Code = "(\w+)"`)); diff != "" || len(want) == 0 {
		t.Errorf("codes (-openapi.yaml +errors.go):\n%s", diff)
	}
}

func codesIn(t *testing.T, file, pattern string) (codes []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		codes = append(codes, string(match[1]))
	}
	return codes
}

// The client knows exactly the statuses that the server may send.
func TestEveryStatusIsKnown(t *testing.T) {
	var known []query.Status
	for _, s := range client.Statuses {
		known = append(known, query.Status(s))
	}
	if diff := cmp.Diff(query.Statuses, known, cmpopts.SortSlices(func(a, b query.Status) bool { return a < b })); diff != "" {
		t.Errorf("statuses (-server +client):\n%s", diff)
	}
}
