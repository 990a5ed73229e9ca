package serve

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const queryPath = "/v1/query"

// refusals are bad requests with their status and error. The limits are 2000 bytes and 6 values.
var refusals = []struct {
	name, method, target, body string
	status                     int
	want                       string // under "error"
}{
	{
		"nothing", "POST", queryPath, "",
		400, `{"code":"malformed_json","message":"the body is not JSON: it is empty"}`,
	},
	{
		"no JSON", "POST", queryPath, `{"features": [device_tx_7d]}`,
		400, `{"code":"malformed_json","message":"the body is not JSON: 'd' at byte 15: a value is expected; text must be in double quotes"}`,
	},
	{
		"a number that is not JSON", "POST", queryPath, `{"at": 017}`,
		400, `{"code":"malformed_json","message":"the body is not JSON: '1' at byte 9: a comma or a closing brace is expected"}`,
	},
	{
		"trailing garbage", "POST", queryPath, `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}]} {}`,
		400, `{"code":"malformed_json","message":"the body is not JSON: '{' at byte 67: there must be nothing after the first value"}`,
	},
	{
		"no UTF-8", "POST", queryPath, "{\"service\": \"\xff\"}",
		400, `{"code":"malformed_json","message":"the body is not UTF-8"}`,
	},
	{
		"nested too deep", "POST", queryPath, strings.Repeat("[", 400) + strings.Repeat("]", 400),
		400, `{"code":"malformed_json","message":"the body is nested deeper than 300 levels"}`,
	},
	{
		"no object", "POST", queryPath, `["device_tx_7d"]`,
		400, `{"code":"wrong_type","message":"a question must be an object; a list is not"}`,
	},
	{
		"an unknown key", "POST", queryPath, `{"feature": ["device_tx_7d"]}`,
		400, `{"code":"unknown_key","message":"a question has no key \"feature\"; its keys are features, service, entities, members, at, pending, event and wait_for","key":"feature","nearest":"features"}`,
	},
	{
		"a key twice", "POST", queryPath, `{"at": 1, "at": 2}`,
		400, `{"code":"duplicate_key","message":"key \"at\" appears twice in a question","key":"at"}`,
	},
	{
		"features of the wrong type", "POST", queryPath, `{"features": "device_tx_7d"}`,
		400, `{"code":"wrong_type","message":"features must be a list of names; \"device_tx_7d\" is not","key":"features"}`,
	},
	{
		"a feature of the wrong type", "POST", queryPath, `{"features": [null]}`,
		400, `{"code":"wrong_type","message":"features must be a list of names; null is not one","key":"features"}`,
	},
	{
		"a service of the wrong type", "POST", queryPath, `{"service": {"name": "payment_risk"}}`,
		400, `{"code":"wrong_type","message":"service must be a name; an object is not","key":"service"}`,
	},
	{
		"no features", "POST", queryPath, `{"features": [], "entities": [{"device_id": "d1"}]}`,
		400, `{"code":"missing_features","message":"a question must name features or a service, such as \"features\": [\"device_tx_7d\"]"}`,
	},
	{
		"an unknown feature, slightly wrong", "POST", queryPath, `{"features": ["device_tx_7"], "entities": [{"device_id": "d1"}]}`,
		404, `{"code":"unknown_feature","message":"there is no feature \"device_tx_7\"; did you mean \"device_tx_7d\"?","feature":"device_tx_7","nearest":"device_tx_7d"}`,
	},
	{
		"a service among the features", "POST", queryPath, `{"features": ["payment_risk"], "entities": [{"device_id": "d1"}]}`,
		404, `{"code":"unknown_feature","message":"there is no feature \"payment_risk\", but there is a service of that name: ask for it by service, not by features","feature":"payment_risk"}`,
	},
	{
		"an unknown feature, like no other", "POST", queryPath, `{"features": ["ip_logins"], "entities": [{"device_id": "d1"}]}`,
		404, `{"code":"unknown_feature","message":"there is no feature \"ip_logins\"; known are device_amount_7d, device_avg_7d, device_cards_7d, device_max_name_7d, device_tx_7d, device_users_7d, typed_7d, user_last","feature":"ip_logins"}`,
	},
	{
		"an unknown service", "POST", queryPath, `{"service": "payment-risk", "entities": [{"device_id": "d1"}]}`,
		404, `{"code":"unknown_service","message":"there is no service \"payment-risk\"; did you mean \"payment_risk\"?","nearest":"payment_risk"}`,
	},
	{
		"no entities", "POST", queryPath, `{"features": ["device_tx_7d"]}`,
		400, `{"code":"missing_entities","message":"a question must have entities, such as \"entities\": [{\"device_id\": \"d000001\"}]"}`,
	},
	{
		"an empty list of entities", "POST", queryPath, `{"features": ["device_tx_7d"], "entities": []}`,
		400, `{"code":"missing_entities","message":"entities must not be empty"}`,
	},
	{
		"entities of the wrong type", "POST", queryPath, `{"features": ["device_tx_7d"], "entities": {"device_id": "d1"}}`,
		400, `{"code":"wrong_type","message":"entities must be a list of objects; an object is not","key":"entities"}`,
	},
	{
		"an entity of the wrong type", "POST", queryPath, `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}, "d2"]}`,
		400, `{"code":"wrong_type","message":"entities must be a list of objects; \"d2\" is not one","key":"entities","entity":1}`,
	},
	{
		"a missing key", "POST", queryPath, `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}, {"user_id": "u1"}]}`,
		400, `{"code":"missing_key","message":"entity 1 has no key \"device_id\" (string), which feature \"device_tx_7d\" needs","feature":"device_tx_7d","key":"device_id","entity":1}`,
	},
	{
		"a key twice in an entity", "POST", queryPath, `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1", "device_\u0069d": "d2"}]}`,
		400, `{"code":"duplicate_key","message":"key \"device_id\" appears twice in entity 0","key":"device_id","entity":0}`,
	},
	{
		"a string that is a number", "POST", queryPath, `{"features": ["device_tx_7d"], "entities": [{"device_id": 1}]}`,
		400, `{"code":"wrong_type","message":"key \"device_id\" of entity 0 must be a string for feature \"device_tx_7d\"; 1 is not","feature":"device_tx_7d","key":"device_id","entity":0}`,
	},
	{
		"a bool that is a number", "GET", "/v1/features/typed_7d?b=1&d=1&i=1&s=1&t=1", "",
		400, `{"code":"wrong_type","message":"key \"b\" of entity 0 must be true or false for feature \"typed_7d\"; 1 is not","feature":"typed_7d","key":"b","entity":0}`,
	},
	{
		"a decimal with too many digits", "GET", "/v1/features/typed_7d?b=true&d=1.001&i=1&s=1&t=1", "",
		400, `{"code":"wrong_type","message":"key \"d\" of entity 0 must be a decimal with up to 2 digits after the decimal point for feature \"typed_7d\"; 1.001 is not","feature":"typed_7d","key":"d","entity":0}`,
	},
	{
		"a decimal that is too large", "GET", "/v1/features/typed_7d?b=true&d=92233720368547758.08&i=1&s=1&t=1", "",
		400, `{"code":"wrong_type","message":"key \"d\" of entity 0 must be a decimal with up to 2 digits after the decimal point for feature \"typed_7d\"; 92233720368547758.08 is not","feature":"typed_7d","key":"d","entity":0}`,
	},
	{
		"an integer with a fraction", "GET", "/v1/features/typed_7d?b=true&d=1&i=1.5&s=1&t=1", "",
		400, `{"code":"wrong_type","message":"key \"i\" of entity 0 must be an integer for feature \"typed_7d\"; 1.5 is not","feature":"typed_7d","key":"i","entity":0}`,
	},
	{
		"a time that is text", "GET", "/v1/features/typed_7d?b=true&d=1&i=1&s=1&t=2018-07-25", "",
		400, `{"code":"wrong_type","message":"key \"t\" of entity 0 must be a time (milliseconds since 1970, or RFC 3339) for feature \"typed_7d\"; \"2018-07-25\" is not","feature":"typed_7d","key":"t","entity":0}`,
	},
	{
		"a long key is shortened", "POST", queryPath, `{"x` + strings.Repeat("é", 100) + `": 1}`,
		400, `{"code":"unknown_key","message":"a question has no key \"x` + strings.Repeat("é", 31) + `\"…; its keys are features, service, entities, members, at, pending, event and wait_for","key":"x` + strings.Repeat("é", 100) + `"}`,
	},
	{
		"a moment that is a word", "POST", queryPath, `{"at": "yesterday"}`,
		400, `{"code":"bad_at","message":"at must be milliseconds since 1970 or RFC 3339 such as 2018-07-25T05:21:16Z; \"yesterday\" is not","key":"at"}`,
	},
	{
		"a moment whose + is a space", "GET", "/v1/features/device_tx_7d?device_id=d1&at=2018-07-25T07:21:16+02:00", "",
		400, `{"code":"bad_at","message":"at must be milliseconds since 1970 or RFC 3339 such as 2018-07-25T05:21:16Z; \"2018-07-25T07:21:16 02:00\" is not: in a URL + is written %2B","key":"at"}`,
	},
	{
		"a text whose + is a space", "GET", "/v1/features/device_tx_7d?device_id=+4915112345", "",
		400, `{"code":"malformed_query","message":"parameter \"device_id\" begins with a space: in a URL + is written %2B, and a space %20","feature":"device_tx_7d","key":"device_id"}`,
	},
	{
		"the same in a name that is escaped", "GET", "/v1/features/device_tx_7d?at=2018-07-25T05:21:16Z&device%5fid=+4915112345", "",
		400, `{"code":"malformed_query","message":"parameter \"device_id\" begins with a space: in a URL + is written %2B, and a space %20","feature":"device_tx_7d","key":"device_id"}`,
	},
	{
		"a key that is a time whose + is a space", "GET", "/v1/features/typed_7d?b=true&d=1&i=1&s=1&t=2018-07-25T07:21:16+02:00", "",
		400, `{"code":"wrong_type","message":"key \"t\" of entity 0 must be a time (milliseconds since 1970, or RFC 3339) for feature \"typed_7d\"; \"2018-07-25T07:21:16 02:00\" is not: in a URL + is written %2B","feature":"typed_7d","key":"t","entity":0}`,
	},
	{
		"an unknown service, like no other", "POST", queryPath, `{"service": "refunds", "entities": [{"device_id": "d1"}]}`,
		404, `{"code":"unknown_service","message":"there is no service \"refunds\"; known are payment_risk"}`,
	},
	{
		"a moment in seconds", "POST", queryPath, `{"at": 1532496076}`,
		400, `{"code":"bad_at","message":"at must be milliseconds since 1970; 1532496076 looks like seconds: did you mean 1532496076000?","key":"at"}`,
	},
	{
		"a moment that is a year", "GET", "/v1/features/device_tx_7d?device_id=d1&at=2030", "",
		400, `{"code":"bad_at","message":"at must be milliseconds since 1970 or RFC 3339; 2030 looks like a year: did you mean \"2030-01-01T00:00:00Z\"?","key":"at"}`,
	},
	{
		"a long number is shortened", "POST", queryPath, `{"at": 1` + strings.Repeat("0", 99) + `}`,
		400, `{"code":"bad_at","message":"at must be milliseconds since 1970 or RFC 3339 such as 2018-07-25T05:21:16Z; 1` + strings.Repeat("0", 63) + `… is not","key":"at"}`,
	},
	{
		"nothing but nulls", "POST", queryPath, `{"features": null, "service": null, "entities": null, "at": null}`,
		400, `{"code":"missing_features","message":"a question must name features or a service, such as \"features\": [\"device_tx_7d\"]"}`,
	},
	{
		"a moment with a fraction", "GET", "/v1/features/device_tx_7d?device_id=d1&at=1532496076.032", "",
		400, `{"code":"bad_at","message":"at must be milliseconds since 1970 or RFC 3339 such as 2018-07-25T05:21:16Z; 1532496076.032 is not","key":"at"}`,
	},
	{
		"a moment before 1970", "GET", "/v1/features/device_tx_7d?device_id=d1&at=1969-12-31T00:00:00Z", "",
		400, `{"code":"bad_at","message":"at must not lie before 1970; \"1969-12-31T00:00:00Z\" does","key":"at"}`,
	},
	{
		"a moment in microseconds", "GET", "/v1/features/device_tx_7d?device_id=d1&at=1532496076032000", "",
		400, `{"code":"at_too_far","message":"at must be milliseconds since 1970; 1532496076032000 looks like microseconds: did you mean 1532496076032?","key":"at"}`,
	},
	{
		"a moment in nanoseconds", "POST", queryPath, `{"at": 1532496076032000000}`,
		400, `{"code":"at_too_far","message":"at must be milliseconds since 1970; 1532496076032000000 looks like nanoseconds: did you mean 1532496076032?","key":"at"}`,
	},
	{
		"a moment in minutes of the far future", "POST", queryPath, `{"at": 9532496076032}`,
		400, `{"code":"at_too_far","message":"at lies more than 366 days ahead; in milliseconds it is now 1532520000000, and at is 9532496076032","key":"at"}`,
	},
	{
		"a moment of the far future in words", "GET", "/v1/features/device_tx_7d?device_id=d1&at=2030-01-01T00:00:00Z", "",
		400, `{"code":"at_too_far","message":"at lies more than 366 days ahead; in RFC 3339 it is now 2018-07-25T12:00:00Z, and at is \"2030-01-01T00:00:00Z\": check the year","key":"at"}`,
	},
	{
		"a moment in seconds, long ago", "POST", queryPath, `{"at": 86400}`,
		400, `{"code":"bad_at","message":"at must be milliseconds since 1970; 86400 looks like seconds: did you mean 86400000?","key":"at"}`,
	},
	{
		"too many values", "POST", queryPath, `{"service": "payment_risk", "entities": [{}, {}, {}]}`,
		413, `{"code":"too_many_values","message":"3 features for 3 entities are more than the 6 values that one question may ask for"}`,
	},
	{
		"too many features", "POST", queryPath, `{"features": ["a", "a", "a", "a", "a", "a", "a"], "entities": [{}]}`,
		413, `{"code":"too_many_values","message":"7 features for 1 entities are more than the 6 values that one question may ask for"}`,
	},
	{
		"too large a body", "POST", queryPath, strings.Repeat(" ", 2001),
		413, `{"code":"body_too_large","message":"the body has more than 2000 bytes"}`,
	},
	{
		"an unknown path", "GET", "/v1/feature", "",
		404, `{"code":"unknown_path","message":"there is no path \"/v1/feature\""}`,
	},
	{
		"a path with two slashes", "POST", "/v1//query", "{}",
		404, `{"code":"unknown_path","message":"there is no path \"/v1//query\"; did you mean \"/v1/query\"?","nearest":"/v1/query"}`,
	},
	{
		"a path with dots", "GET", "/v1/features/../status", "",
		404, `{"code":"unknown_path","message":"there is no path \"/v1/features/../status\"; did you mean \"/v1/status\"?","nearest":"/v1/status"}`,
	},
	{
		"a path with a slash behind it", "GET", "/v1/status/", "",
		404, `{"code":"unknown_path","message":"there is no path \"/v1/status/\""}`,
	},
	{
		"a method of another path", "GET", queryPath, "",
		405, `{"code":"method_not_allowed","message":"/v1/query takes POST, not GET"}`,
	},
	{
		"a method that would write", "DELETE", "/v1/features/device_tx_7d", "",
		405, `{"code":"method_not_allowed","message":"/v1/features/device_tx_7d takes GET, not DELETE"}`,
	},
	{
		"an unknown feature in the path", "GET", "/v1/features/device_tx_30d", "",
		404, `{"code":"unknown_feature","message":"there is no feature \"device_tx_30d\"; did you mean \"device_tx_7d\"?","feature":"device_tx_30d","nearest":"device_tx_7d"}`,
	},
	{
		"an unknown parameter", "GET", "/v1/features/device_tx_7d?device=d1", "",
		400, `{"code":"unknown_key","message":"feature \"device_tx_7d\" has no parameter \"device\"; it takes device_id, at, wait_for","feature":"device_tx_7d","key":"device"}`,
	},
	{
		"a parameter twice", "GET", "/v1/features/device_tx_7d?device_id=d1&device_id=d2", "",
		400, `{"code":"duplicate_key","message":"key \"device_id\" appears twice in the query","key":"device_id"}`,
	},
	{
		"a missing parameter", "GET", "/v1/features/device_tx_7d", "",
		400, `{"code":"missing_key","message":"entity 0 has no key \"device_id\" (string), which feature \"device_tx_7d\" needs","feature":"device_tx_7d","key":"device_id","entity":0}`,
	},
	{
		"a query that is none", "GET", "/v1/features/device_tx_7d?device_id=%zz", "",
		400, `{"code":"malformed_query","message":"the query cannot be read: invalid URL escape \"%zz\""}`,
	},
	{
		"a parameter that is not UTF-8", "GET", "/v1/features/device_tx_7d?device_id=%ff", "",
		400, `{"code":"malformed_query","message":"the query is not UTF-8"}`,
	},
}

func TestRefusals(t *testing.T) {
	for _, test := range refusals {
		t.Run(test.name, func(t *testing.T) {
			reader := &fakeReader{states: stored(), clock: noon.UnixMilli()}
			h := newHandler(reader, func(c *setup) { c.Limits = Limits{Body: 2000, Values: 6} })
			w := do(t, h, test.method, test.target, test.body)
			if w.Code != test.status {
				t.Errorf("status %d, want %d", w.Code, test.status)
			}
			if diff := cmp.Diff(`{"error":`+test.want+"}\n", w.Body.String()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if len(reader.calls) != 0 {
				t.Errorf("the store was read for a refused question")
			}
		})
	}
}

func TestMethodNotAllowedSaysWhichIs(t *testing.T) {
	handler := newHandler(&fakeReader{}, nil)
	for _, c := range []struct{ method, path, allow string }{{"GET", queryPath, "POST"}, {"POST", "/v1/busiest", "GET, HEAD"}} {
		w := do(t, handler, c.method, c.path, "")
		if got := w.Header().Get("Allow"); w.Code != http.StatusMethodNotAllowed || got != c.allow {
			t.Errorf("%s %s: got status %d, Allow %q; want 405 and %q", c.method, c.path, w.Code, got, c.allow)
		}
	}
}
