package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
)

const catalogueJSON = `{"features": [
	{"name": "device_cards_7d", "keys": [{"name": "device_id", "type": "string"}]},
	{"name": "device_tx_7d", "keys": [{"name": "device_id", "type": "string"}]},
	{"name": "pages_seen", "members": "string", "members_needed": true, "keys": [{"name": "device_id", "type": "string"}]},
	{"name": "pages_count", "members": "string", "keys": [{"name": "device_id", "type": "string"}]},
	{"name": "merchant_last", "keys": [{"name": "merchant", "type": "int"}, {"name": "online", "type": "bool"}]}],
	"services": [{"name": "risk", "features": ["merchant_last", "device_tx_7d"]}]}`

const answerOfAll = `{"at":1532520000000,"results":[{"entity":{},"features":{` +
	`"device_cards_7d":{"value":12345,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":false,"standard_error":0.0081},` +
	`"device_tx_7d":{"value":3,"status":"INCOMPLETE","from":1531958400000,"to":1532520000000,"exact":false,"uncertain":2,"capped":true,"complete_since":1532044800000},` +
	`"pages_seen":{"members":[{"member":"7","value":true,"status":"PRESENT"},{"member":"a b","value":false,"status":"PRESENT"}],` +
	`"from":1531958400000,"to":1532520000000,"exact":false,"false_positive_rate":0.00123},` +
	`"merchant_last":{"value":null,"status":"OUTSIDE_MAX_AGE","from":null,"to":1532520000016,"exact":true}}}]}`

// server returns the same response to every question, and keeps the question.
func server(t *testing.T, status int, response string) (address string, question *string) {
	t.Helper()
	question = new(string)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/features", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, catalogueJSON) })
	mux.HandleFunc("POST /v1/query", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*question = string(body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, response)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, question
}

// run runs the command and returns its output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newQueryCommand()
	cmd.SilenceErrors = true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestQuery(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		args           []string
		question, want string
	}{
		{
			"a table", []string{"device_tx_7d", "device_cards_7d", "--service", "risk", "device_id=d1", "merchant=17", "online=true"},
			`{"entities":[{"device_id":"d1","merchant":17,"online":true}],"features":["device_tx_7d","device_cards_7d"],"service":"risk"}`,
			`ENTITY                                FEATURE          VALUE  STATUS           FROM                  TO                        EXACT                     COMPLETE SINCE
device_id=d1 merchant=17 online=true  device_tx_7d     3      INCOMPLETE       2018-07-19T00:00:00Z  2018-07-25T12:00:00Z      no: up to 2 more, capped  2018-07-20T00:00:00Z
device_id=d1 merchant=17 online=true  device_cards_7d  12345  PRESENT          2018-07-19T00:00:00Z  2018-07-25T12:00:00Z      no: standard error 0.81%  beginning
device_id=d1 merchant=17 online=true  merchant_last    null   OUTSIDE_MAX_AGE  -                     2018-07-25T12:00:00.016Z  yes                       -
`,
		},
		{
			"members, one line each", []string{"device_tx_7d", "pages_seen", "device_id=d1", "--member", "7", "--member", "a b"},
			`{"entities":[{"device_id":"d1"}],"features":["device_tx_7d","pages_seen"],"members":{"pages_seen":["7","a b"]}}`,
			`ENTITY        FEATURE           VALUE  STATUS      FROM                  TO                    EXACT                          COMPLETE SINCE
device_id=d1  device_tx_7d      3      INCOMPLETE  2018-07-19T00:00:00Z  2018-07-25T12:00:00Z  no: up to 2 more, capped       2018-07-20T00:00:00Z
device_id=d1  pages_seen "7"    true   PRESENT     2018-07-19T00:00:00Z  2018-07-25T12:00:00Z  no: true is wrong with 0.123%  beginning
device_id=d1  pages_seen "a b"  false  PRESENT     2018-07-19T00:00:00Z  2018-07-25T12:00:00Z  no: true is wrong with 0.123%  beginning
`,
		},
		{
			"members of what may be asked about some", []string{"--json", "pages_count", "device_id=d1", "--member", "7"},
			`{"entities":[{"device_id":"d1"}],"features":["pages_count"],"members":["7"]}`, answerOfAll + "\n",
		},
		{
			"members of what takes none are the server's to refuse", []string{"--json", "device_tx_7d", "device_id=d1", "--member", "7"},
			`{"entities":[{"device_id":"d1"}],"features":["device_tx_7d"],"members":[7]}`, answerOfAll + "\n",
		},
		{
			"JSON, of a moment in milliseconds", []string{"--json", "device_tx_7d", "device_id=17", "--at", "1532496076032"},
			`{"at":1532496076032,"entities":[{"device_id":"17"}],"features":["device_tx_7d"]}`, answerOfAll + "\n",
		},
		{
			"a moment as text, a value with =", []string{"--json", "device_tx_7d", "device_id=a=b", "--at", "2018-07-25T05:21:16Z"},
			`{"at":"2018-07-25T05:21:16Z","entities":[{"device_id":"a=b"}],"features":["device_tx_7d"]}`, answerOfAll + "\n",
		},
		{
			"an event in hand", []string{"--json", "device_tx_7d", "device_id=17", "--pending", `{"stream": "transaction", "event": {"at": 1e3}}`},
			`{"entities":[{"device_id":"17"}],"features":["device_tx_7d"],"pending":{"stream":"transaction","event":{"at":1e3}}}`, answerOfAll + "\n",
		},
		{
			"events in a file", []string{"--json", "device_tx_7d", "device_id=17", "--pending", "testdata/pending.json"},
			`{"entities":[{"device_id":"17"}],"features":["device_tx_7d"],"pending":[{"stream":"transaction","event":{"id":"t1"}}]}`, answerOfAll + "\n",
		},
		{
			"a value of the wrong type is the server's to refuse", []string{"--json", "merchant_last", "merchant=x"},
			`{"entities":[{"merchant":"x"}],"features":["merchant_last"]}`, answerOfAll + "\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			address, question := server(t, http.StatusOK, answerOfAll)
			got, err := run(t, append(test.args, "--address", strings.TrimPrefix(address, "http://"))...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
			if *question != test.question {
				t.Errorf("asked %s\nwant  %s", *question, test.question)
			}
		})
	}
}

// What became of each pending event is said below the table.
func TestQueryWithPendingEvents(t *testing.T) {
	t.Parallel()
	const outcomes = `{"stream":"tx","time":1532520000000,"deduplicated":false},{"stream":"tx","time":1532520000000,"deduplicated":true,"late":true},` +
		`{"stream":"tx","time":1532520000000,"deduplicated":true,"met":1532516400000},{"stream":"tx","time":1532520000000,"deduplicated":true,"uncounted":true}`
	address, _ := server(t, http.StatusOK, strings.Replace(answerOfAll, "{", `{"pending":[`+outcomes+`],`, 1))
	got, err := run(t, "device_tx_7d", "device_id=d1", "--address", address, "--pending", `[{}, {}, {}, {}]`)
	if err != nil {
		t.Fatal(err)
	}
	const event = "the pending event of tx at 2018-07-25T12:00:00Z "
	want := event + "is counted, twice if it has already arrived\n" +
		event + "is counted, once even if it has already arrived; it is too late for some features\n" +
		event + "is not counted again: its ID was met at 2018-07-25T11:00:00Z\n" +
		event + "counts nowhere: it is of another entity, or no feature selects it\n"
	if !strings.HasSuffix(got, "\n"+want) {
		t.Errorf("got\n%s\nwant at its end\n%s", got, want)
	}
}

// What could not be read is not complete since anything.
func TestQueryOfStateThatIsAway(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"UNAVAILABLE", "DAMAGED"} {
		address, _ := server(t, http.StatusOK, `{"at":1532520000000,"results":[{"entity":{},"features":{"device_tx_7d":`+
			`{"value":null,"status":"`+status+`","from":1531958400000,"to":1532520000000,"exact":false}}}]}`)
		got, err := run(t, "device_tx_7d", "device_id=d1", "--address", address)
		if want := "  2018-07-25T12:00:00Z  no     -\n"; err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("error %v, printed\n%swant it to end with %q", err, got, want)
		}
		address, _ = server(t, http.StatusOK, `{"at":1532520000000,"results":[{"entity":{},"features":{"pages_seen":`+
			`{"members":[{"member":"home","value":null,"status":"`+status+`"}],"from":1531958400000,"to":1532520000000,"exact":false}}}]}`)
		got, err = run(t, "pages_seen", "device_id=d1", "--member", "home", "--address", address)
		if want := `pages_seen "home"  null   ` + status; err != nil || !strings.Contains(got, want) {
			t.Errorf("error %v, printed\n%swant %q in it", err, got, want)
		}
	}
}

// The examples of the command can be asked of the definitions that are shipped.
func TestQueryExamples(t *testing.T) {
	t.Parallel()
	registry, err := definition.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	services := map[string][]*features.Feature{}
	for _, s := range registry.Services {
		services[s.Name] = s.Features
	}
	for example := range strings.Lines(newQueryCommand().Example) {
		arguments := strings.Fields(example)[2:] // after weir query
		var asked []*features.Feature
		var keys []string
		for i, argument := range arguments {
			key, _, isKey := strings.Cut(argument, "=")
			switch {
			case isKey:
				keys = append(keys, key)
			case argument == "--service":
				asked = append(asked, services[arguments[i+1]]...)
			default:
				if f, ok := registry.Feature(argument); ok {
					asked = append(asked, f)
				}
			}
		}
		if len(asked) == 0 {
			t.Errorf("%sasks for no feature of the shipped definitions", example)
		}
		for _, f := range asked {
			for _, key := range f.By {
				if !slices.Contains(keys, key) {
					t.Errorf("%slacks the key %s of %s", example, key, f.Name)
				}
			}
		}
	}
}

func TestQueryErrors(t *testing.T) {
	t.Parallel()
	refusing, _ := server(t, http.StatusNotFound, `{"error":{"code":"unknown_feature","message":"there is no feature \"device_tx\""}}`)
	broken, _ := server(t, http.StatusOK, "hello")
	foreign := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(foreign.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no features", []string{"device_id=d1"}, "name a feature or a --service; GET /v1/features of the server lists them"},
		{"a key with a colon", []string{"device_tx_7d", "device_id:d1"}, `"device_id:d1" is neither a feature nor KEY=VALUE: did you mean device_id=d1?`},
		{"a key twice", []string{"device_tx_7d", "device_id=d1", "device_id=d2"}, `key "device_id" is given twice`},
		{
			"a key of no feature", []string{"device_tx_7d", "merchant_last", "device=d1", "--address", refusing},
			`no feature asked for has the key "device"; their keys: device_id, merchant, online`,
		},
		{
			"pending events in no file", []string{"device_tx_7d", "device_id=d1", "--address", refusing, "--pending", "testdata/missing.json"},
			"--pending: open testdata/missing.json: no such file or directory",
		},
		{
			"pending events that are not JSON", []string{"device_tx_7d", "device_id=d1", "--address", refusing, "--pending", `{"stream": transaction}`},
			"--pending is not JSON: 'a' at byte 14: text must be in double quotes",
		},
		{
			"a file that is not JSON", []string{"device_tx_7d", "device_id=d1", "--address", refusing, "--pending", "query_test.go"},
			"--pending: query_test.go is not JSON: 'p' at byte 1: a value is expected; text must be in double quotes",
		},
		{"refused", []string{"device_tx", "device_id=d1", "--address", refusing}, `there is no feature "device_tx"`},
		{
			"no JSON", []string{"device_tx_7d", "device_id=d1", "--address", broken},
			broken + "/v1/query did not answer in JSON; is it a weir server?",
		},
		{
			"another server", []string{"device_tx_7d", "device_id=d1", "--address", foreign.URL + "/"},
			foreign.URL + "/v1/features answered 404 Not Found; is it a weir server?",
		},
		{
			"no server", []string{"device_tx_7d", "device_id=d1", "--address", gone.URL},
			"no answer from --address " + gone.URL + ": nothing listens at " + strings.TrimPrefix(gone.URL, "http://") + ": check the address, and that the server runs",
		},
		{
			"no address", []string{"device_tx_7d", "device_id=d1", "--address", "http://a b"},
			`--address: "http://a b" is not an address such as http://weir:8080`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := run(t, test.args...)
			if err == nil || err.Error() != test.want {
				t.Errorf("%v\nwant %s", err, test.want)
			}
			if strings.Contains(out, "ENTITY") {
				t.Errorf("an answer was printed despite the error: %s", out)
			}
		})
	}
}

func TestCellOfAValue(t *testing.T) {
	t.Parallel()
	short, text := `[{"value":"Aldi","count":2}]`, `"`+strings.Repeat("x", 100)+`"`
	for given, want := range map[string]string{
		"3": "3", short: short, text: text, "[" + text + "]": "[" + text + "]",
		"[" + strings.Repeat(`"0123456789",`, 20) + "1]": "[" + strings.Repeat(`"0123456789",`, 6) + "… 21 in all]",
		"[" + text + ",1]": "[" + text + ",… 2 in all]",
	} {
		if got := (value{Value: []byte(given)}).cell(); got != want {
			t.Errorf("%s\n got %s\nwant %s", given, got, want)
		}
	}
}

func TestExactnessOfAValue(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]value{
		"yes": {Exact: true}, "no": {}, "no: within 1%": {RelativeError: 0.01}, "no: within 2.5%, capped": {RelativeError: 0.025, Capped: true},
	} {
		if got := v.exactness(); got != want {
			t.Errorf("%+v is %q, want %q", v, got, want)
		}
	}
}
