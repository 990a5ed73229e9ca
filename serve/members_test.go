package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/serve/catalogue"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

const memberDefinitions = `
streams:
  view:
    topic: views
    timestamp: time
    fields:
      user: string
      page: string
      i: int
      f: float
      d: {type: decimal, scale: 2}
      b: bool
      t: timestamp
features:
  views: COUNT(1d, view, user)
  pages_seen: SEEN(1d, view, user, page)
  few_seen: SEEN(1d, view, user, i, max=1, fp=0.5)
  i_seen: SEEN(lifetime, view, user, i)
  f_seen: SEEN(lifetime, view, user, f)
  d_seen: SEEN(lifetime, view, user, d)
  b_seen: SEEN(lifetime, view, user, b)
  t_seen: SEEN(lifetime, view, user, t)
  exactly_seen: SEEN(1h, view, user, page, tile=exact, max=30)
  pages_set: SET(1d, view, user, page)
  pages_count: COUNT_DISTINCT(1d, view, user, page)
  fellow_pages: COUNT_DISTINCT(1d, view, SET(1d, view, page, user), page, max=5)
services:
  pages: [views, pages_seen]
`

// memberHandler serves state in memory after some events of a user.
func memberHandler(t testing.TB) http.Handler {
	t.Helper()
	r := defined.Registry(t, memberDefinitions)
	now := noon.UnixMilli()
	stored, mapper, batch := memory.New(), r.NewMapper(), &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	event := func(fields string) {
		record := record.Record{Partition: state.Partition{Topic: "views"}, Timestamp: now, Value: fmt.Appendf(nil, `{"time":%d,%s}`, now, fields)}
		if _, err := mapper.Map(&record, 0, batch); err != nil {
			t.Fatal(err)
		}
	}
	event(`"user":"u1","page":"home","i":7,"f":-0.25,"d":1.50,"b":true,"t":1532496076032`)
	for _, page := range []string{`"café\n|"`, `"a"`, `"b"`, `"c"`} {
		event(`"user":"u1","page":` + page)
	}
	for i := range 40 {
		event(fmt.Sprintf(`"user":"u2","i":%d`, i))
	}
	if err := stored.Apply(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
	return newHandler(&fakeReader{read: stored.Read}, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.Limits.Values = 12
	})
}

const strings12 = `"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"`

var rateOf = regexp.MustCompile(`"false_positive_rate":0\.[0-4][0-9]*`) // at most a half

// ask asks about one user.
func ask(t testing.TB, user, rest string) *httptest.ResponseRecorder {
	t.Helper()
	return do(t, memberHandler(t), "POST", queryPath, fmt.Sprintf(`{"entities": [{"user": %q}], %s}`, user, rest))
}

func TestMembers(t *testing.T) {
	const day = `"from":1532437200000,"to":1532520000000`
	for _, test := range []struct{ name, user, question, want string }{
		{
			"one answer for each, in their order, also for a repeated one", "u1",
			`"features": ["pages_seen"], "members": ["x", "home", "caf\u00e9\n|", "home"]`,
			`{"pages_seen":{"members":[{"member":"x","value":false,"status":"PRESENT"},{"member":"home","value":true,"status":"PRESENT"},` +
				`{"member":"caf\u00e9\n|","value":true,"status":"PRESENT"},{"member":"home","value":true,"status":"PRESENT"}],` + day + `,"exact":true}}`,
		},
		{
			"of nobody", "u3", `"features": ["pages_seen"], "members": ["home"]`,
			`{"pages_seen":{"members":[{"member":"home","value":false,"status":"NOT_FOUND"}],` + day + `,"exact":true}}`,
		},
		{
			"numbers and times in any form", "u1",
			`"features": ["i_seen", "f_seen", "d_seen", "b_seen", "t_seen"], "members": {
				"i_seen": [7.0, 8], "f_seen": [-25e-2], "d_seen": ["1.5", 1.5, 1.51], "b_seen": [true, false], "t_seen": ["2018-07-25T05:21:16.032Z", 1]}`,
			`{"i_seen":{"members":[{"member":7.0,"value":true,"status":"PRESENT"},{"member":8,"value":false,"status":"PRESENT"}],"from":null,"to":1532520000000,"exact":true},` +
				`"f_seen":{"members":[{"member":-25e-2,"value":true,"status":"PRESENT"}],"from":null,"to":1532520000000,"exact":true},` +
				`"d_seen":{"members":[{"member":"1.5","value":true,"status":"PRESENT"},{"member":1.5,"value":true,"status":"PRESENT"},{"member":1.51,"value":false,"status":"PRESENT"}],"from":null,"to":1532520000000,"exact":true},` +
				`"b_seen":{"members":[{"member":true,"value":true,"status":"PRESENT"},{"member":false,"value":false,"status":"PRESENT"}],"from":null,"to":1532520000000,"exact":true},` +
				`"t_seen":{"members":[{"member":"2018-07-25T05:21:16.032Z","value":true,"status":"PRESENT"},{"member":1,"value":false,"status":"PRESENT"}],"from":null,"to":1532520000000,"exact":true}}`,
		},
		{
			"sets and counts, from the log and from tiles", "u1",
			`"features": ["pages_set", "pages_count", "exactly_seen"], "members": ["a", "home"]`,
			`{"pages_set":{"members":[{"member":"a","value":true,"status":"PRESENT"},{"member":"home","value":true,"status":"PRESENT"}],"from":1532437200000,"to":1532520000000,"exact":true},` +
				`"pages_count":{"members":[{"member":"a","value":true,"status":"PRESENT"},{"member":"home","value":true,"status":"PRESENT"}],` + day + `,"exact":true},` +
				`"exactly_seen":{"members":[{"member":"a","value":true,"status":"PRESENT"},{"member":"home","value":true,"status":"PRESENT"}],"from":1532516400001,"to":1532520000000,"exact":true}}`,
		},
		{
			"beside features that are not asked about any", "u1",
			`"service": "pages", "features": ["pages_count", "pages_set"], "members": {"pages_seen": ["a"]}`,
			`{"pages_count":{"value":5,"status":"PRESENT",` + day + `,"exact":true},` +
				`"pages_set":{"value":["a","b","c","café\u000a|","home"],"status":"PRESENT","from":1532437200000,"to":1532520000000,"exact":true},` +
				`"views":{"value":5,"status":"PRESENT",` + day + `,"exact":true},` +
				`"pages_seen":{"members":[{"member":"a","value":true,"status":"PRESENT"}],` + day + `,"exact":true}}`,
		},
		{
			"with a rate of false positives", "u2", `"features": ["few_seen"], "members": [1, 39]`,
			`{"few_seen":{"members":[{"member":1,"value":true,"status":"PRESENT"},{"member":39,"value":true,"status":"PRESENT"}],` + day +
				`,"exact":false,"false_positive_rate":RATE}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := ask(t, test.user, test.question)
			if w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			want := fmt.Sprintf(`{"at":1532520000000,"results":[{"entity":{"user":%q},"features":%s}]}`, test.user, test.want) + "\n"
			if diff := cmp.Diff(want, rateOf.ReplaceAllString(w.Body.String(), `"false_positive_rate":RATE`)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// Members are listed also where there is no answer, each with the status that says why: whoever only goes through them
// must not take them for none.
func TestMembersWithoutAnAnswer(t *testing.T) {
	for question, want := range map[string]string{
		`"entities": [{"user": null}]`:                      `"status":"NOT_FOUND"`,
		`"entities": [{"user": "u1"}], "at": 1000000000000`: `"status":"OUTSIDE_MAX_AGE"`,
	} {
		w := do(t, memberHandler(t), "POST", queryPath, `{"features": ["pages_seen"], "members": ["home", "x"], `+question+`}`)
		want := fmt.Sprintf(`"pages_seen":{"members":[{"member":"home","value":null,%s},{"member":"x","value":null,%[1]s}],"from":`, want)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s\n got %s\nwant %s", question, w.Body, want)
		}
	}
}

// A multi-hop feature is asked about the members of all entities together.
func TestMembersOfMultiHopFeatures(t *testing.T) {
	w := do(t, memberHandler(t), "GET", "/v1/features/fellow_pages?page=home&member=a&member=x", "")
	const want = `{"at":1532520000000,"results":[{"entity":{"page":"home"},"features":{"fellow_pages":{` +
		`"members":[{"member":"a","value":true,"status":"PRESENT"},{"member":"x","value":false,"status":"PRESENT"}],` +
		`"from":1532437200000,"to":1532520000000,"exact":true}}}]}` + "\n"
	if w.Body.String() != want {
		t.Errorf("got %s\nwant %s", w.Body, want)
	}
}

func TestMembersAsParameters(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/features/pages_seen?user=u1&member=home&member=7&at=1532520000000": `"pages_seen":{"members":[{"member":"home","value":true,"status":"PRESENT"},{"member":"7","value":false,"status":"PRESENT"}],"from":1532437200000,"to":1532520000000,"exact":true}`,
		"/v1/features/t_seen?user=u1&member=2018-07-25T05:21:16.032Z":           `"t_seen":{"members":[{"member":"2018-07-25T05:21:16.032Z","value":true,"status":"PRESENT"}],"from":null,"to":1532520000000,"exact":true}`,
		"/v1/features/pages_count?user=u1":                                      `"pages_count":{"value":5,"status":"PRESENT","from":1532437200000,"to":1532520000000,"exact":true}`,
	} {
		w := do(t, memberHandler(t), "GET", target, "")
		if want := `{"at":1532520000000,"results":[{"entity":{"user":"u1"},"features":{` + want + "}}]}\n"; w.Body.String() != want {
			t.Errorf("%s\n got %s\nwant %s", target, w.Body, want)
		}
	}
}

// The catalogue says which features take members, and of which type.
func TestMembersInTheCatalogue(t *testing.T) {
	var catalogue catalogue.Catalogue
	if err := json.Unmarshal(do(t, memberHandler(t), "GET", "/v1/features", "").Body.Bytes(), &catalogue); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range catalogue.Features {
		got[f.Name] = fmt.Sprint(f.Members, " ", f.MembersNeeded, " ", f.Series[0].State)
	}
	want := map[string]string{
		"views": " false tiles", "pages_seen": "string true filters", "few_seen": "int true filters", "i_seen": "int true filters",
		"f_seen": "float true filters", "d_seen": "decimal true filters", "b_seen": "bool true filters", "t_seen": "timestamp true filters",
		"fellow_pages": "string false members", "exactly_seen": "string true log", "pages_set": "string false members", "pages_count": "string false members",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestRefusedMembers(t *testing.T) {
	for _, test := range []struct {
		name, question string
		status         int
		want           string
	}{
		{
			"none", `"features": ["pages_seen"]`, 400,
			`{"code":"missing_members","message":"feature \"pages_seen\" is asked about values of \"page\": name them, such as \"members\": [\"a\", \"b\"]","feature":"pages_seen","key":"members"}`,
		},
		{
			"none of one feature", `"features": ["pages_seen", "i_seen"], "members": {"pages_seen": ["a"]}`, 400,
			`{"code":"missing_members","message":"feature \"i_seen\" is asked about values of \"i\": name them, such as \"members\": [1, 2]","feature":"i_seen","key":"members"}`,
		},
		{
			"an empty list", `"features": ["pages_seen"], "members": []`, 400,
			`{"code":"missing_members","message":"members of feature \"pages_seen\" must not be empty","feature":"pages_seen","key":"members"}`,
		},
		{
			"no list", `"features": ["pages_seen"], "members": "home"`, 400,
			`{"code":"wrong_type","message":"members must be a list of values, or an object with such lists by features; \"home\" is not","key":"members"}`,
		},
		{
			"no list of a feature", `"features": ["pages_seen"], "members": {"pages_seen": "home"}`, 400,
			`{"code":"wrong_type","message":"members of feature \"pages_seen\" must be a list of values; \"home\" is not","feature":"pages_seen","key":"members"}`,
		},
		{
			"a feature that has none", `"service": "pages", "members": ["home"]`, 400,
			`{"code":"no_members","message":"feature \"views\" cannot be asked about members; name the features that can: \"members\": {\"FEATURE\": [\"a\"]}","feature":"views","key":"members"}`,
		},
		{
			"a feature that is not asked for", `"features": ["pages_seen"], "members": {"pages_set": ["home"]}`, 400,
			`{"code":"no_members","message":"members are named for feature \"pages_set\", which is not asked for","feature":"pages_set","key":"members"}`,
		},
		{
			"an unknown feature", `"features": ["pages_seen"], "members": {"page_seen": ["home"]}`, 404,
			`{"code":"unknown_feature","message":"there is no feature \"page_seen\"; did you mean \"pages_seen\"?","feature":"page_seen","nearest":"pages_seen"}`,
		},
		{
			"a feature twice", `"features": ["pages_seen"], "members": {"pages_seen": ["home"], "pages_seen": ["a"]}`, 400,
			`{"code":"duplicate_key","message":"key \"pages_seen\" appears twice in members","key":"pages_seen"}`,
		},
		{
			"a member of the wrong type", `"features": ["pages_seen"], "members": ["home", 7]`, 400,
			`{"code":"wrong_type","message":"member 1 of feature \"pages_seen\" must be a string; 7 is not","feature":"pages_seen","key":"members"}`,
		},
		{
			"a member that is null", `"features": ["i_seen"], "members": [null]`, 400,
			`{"code":"wrong_type","message":"member 0 of feature \"i_seen\" must be an integer; null is not","feature":"i_seen","key":"members"}`,
		},
		{
			"a number that is too great", `"features": ["f_seen"], "members": [1e999]`, 400,
			`{"code":"wrong_type","message":"member 0 of feature \"f_seen\" must be a number; 1e999 is not","feature":"f_seen","key":"members"}`,
		},
		{
			"a list as a member", `"features": ["pages_seen"], "members": [["home"]]`, 400,
			`{"code":"wrong_type","message":"member 0 of feature \"pages_seen\" must be a string; a list is not","feature":"pages_seen","key":"members"}`,
		},
		{
			"too many", `"features": ["pages_seen"], "members": [` + strings12 + `, "m"]`, 413,
			`{"code":"too_many_values","message":"1 features with 13 members for 1 entities are more than the 12 values that one question may ask for"}`,
		},
		{
			"too many beside others", `"service": "pages", "members": {"pages_seen": [` + strings12 + `]}`, 413,
			`{"code":"too_many_values","message":"2 features with 12 members for 1 entities are more than the 12 values that one question may ask for"}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := ask(t, "u1", test.question)
			if diff := cmp.Diff(`{"error":`+test.want+"}\n", w.Body.String()); diff != "" || w.Code != test.status {
				t.Errorf("status %d, want %d; error (-want +got):\n%s", w.Code, test.status, diff)
			}
		})
	}
	const unknown = `{"error":{"code":"unknown_key","message":"feature \"views\" has no parameter \"member\"; it takes user, at, wait_for","feature":"views","key":"member"}}` + "\n"
	if w := do(t, memberHandler(t), "GET", "/v1/features/views?user=u1&member=a", ""); w.Body.String() != unknown {
		t.Errorf("got %s\nwant %s", w.Body, unknown)
	}
}
