package serve

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	runtimemetrics "runtime/metrics"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// everyDefinitions has every window and every other option of features; the examples of the
// functions are added to it.
const everyDefinitions = `
streams:
  transaction:
    topic: transactions
    timestamp: {path: ts, unit: ms}
    id: id
    remember_ids: 10m
    fields:
      user: string
      device: string
      merchant: {type: string, max_bytes: 1000}
      status: string
      amount: {type: decimal, scale: 2}
      place: location
      n: int
      rate: float
      ok: bool
      seen: timestamp
  login:
    topic: logins
    match: type == "login"
    timestamp: {path: at, unit: rfc3339}
    fields: {user: {type: string, required: true}, device: string, ip: string, ip_c: {type: string, expr: 'cidr(ip, 24)'}}
features:
  logins: COUNT(1h, login, user, ip_c)
  typed: COUNT(7d, transaction, n, ok, seen, amount, user)
  exact: SUM(1h, transaction, rate, user, tile=exact, bounds='[]', delay=1h)
  delayed: COUNT(7d, transaction, user, delay=1d)
  current: LAST_K(1d, transaction, amount, user, k=3, tile=exact, exclude=current)
  today: COUNT(calendar day tz Asia/Shanghai, transaction, user)
  month: SUM(calendar month tz America/Sao_Paulo, transaction, amount, user)
  tumbling: AVG(tumbling 5m, transaction, amount, user)
  fixed: COUNT(fixed 1h, transaction, user)
  session: COUNT(session 30m, transaction, user)
  last_ten: SUM(last 10, transaction, amount, user)
  ever: MAX(lifetime, transaction, seen, user)
  per_merchant: SUM(7d, transaction, amount, user, per=merchant)
  per_moment: COUNT(1d, transaction, user, per=seen, max=5)
  merchants_seen: SEEN(30d, transaction, user, merchant)
  numbers_seen: SEEN(lifetime, transaction, user, n)
  rates_seen: SEEN(1d, transaction, user, rate, max=1, fp=0.5)
  share: {expr: logins_of_user / (delayed + 1), default: -1}
  logins_of_user: COUNT(1d, login, user)
  device_users_devices: COUNT_DISTINCT(30d, transaction, SET(30d, transaction, device, user), device, max=5)
`

// everyRegistry has a feature with every function, named after it, and those of everyDefinitions.
func everyRegistry(t testing.TB) *features.Registry {
	t.Helper()
	text := everyDefinitions
	for i, k := range aggregate.All {
		text += fmt.Sprintf("  kind_%d: >-\n    %s\n", i, k.Spec().Example)
	}
	return defined.Registry(t, text+"services:\n  some: [logins_of_user, share, per_merchant]\n")
}

// everyState is the state after some events of two users.
func everyState(t testing.TB, r *features.Registry) *memory.Store {
	t.Helper()
	stored, mapper, batch := memory.New(), r.NewMapper(), &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	now := noon.UnixMilli()
	event := func(topic, value string) {
		record := record.Record{Partition: state.Partition{Topic: topic}, Timestamp: now, Value: []byte(value)}
		if _, err := mapper.Map(&record, 0, batch); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		event("transactions", fmt.Sprintf(`{"id": "t%d", "ts": %d, "user": "u%d", "device": "d%d", "merchant": "m%d", "status": "declined",
			"amount": %d.25, "place": {"lat": %d, "lon": %d}, "n": %d, "rate": %d.5, "ok": %t, "seen": %d}`,
			i, now-int64(i)*3_600_000, i%2, i%3, i%5, i*10, i, -2*i, i, i, i%2 == 0, now-int64(i)))
		event("logins", fmt.Sprintf(`{"type": "login", "at": %q, "user": "u%d", "device": "d%d", "ip": "10.0.%d.7"}`,
			noon.Add(-time.Duration(i)*time.Minute).Format(time.RFC3339), i%2, i%3, i))
	}
	if err := stored.Apply(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
	return stored
}

// fuzzLimits bound the questions of FuzzEndpoints.
var fuzzLimits = Limits{Body: 16 << 10, Values: 300, Answer: 64 << 10, Timeout: 4 * time.Millisecond}

// FuzzEndpoints: every request is answered or refused as /openapi.yaml says, in bounded memory. The
// store is healthy, so nothing fails.
func FuzzEndpoints(f *testing.F) {
	r := everyRegistry(f)
	stored := clocked{everyState(f, r)}
	var log bytes.Buffer
	h := newHandler(stored, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.Limits = fuzzLimits
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Applied = func(_ context.Context, _ state.Partition, offset int64, _ []state.Read) (bool, error) {
			return offset < 10, nil
		}
	})
	addEndpoints(f, r)
	f.Fuzz(func(t *testing.T, method, target, header, body string) {
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\n" + header + "\r\n\r\n")))
		if err != nil {
			return // net/http refuses it before the handler
		}
		request.Body = io.NopCloser(strings.NewReader(body))
		log.Reset()
		w := httptest.NewRecorder()
		before := allocated()
		// The clock of a synctest bubble stands still while goroutines run, so no answer is late on a busy machine.
		synctest.Test(t, func(*testing.T) { h.ServeHTTP(w, request) })
		if took, most := allocated()-before, uint64(64<<20); took > most {
			t.Errorf("%d bytes were allocated, want at most %d", took, most)
		}
		if w.Code >= 500 {
			t.Fatalf("status %d: %s\n%s", w.Code, w.Body, log.String())
		}
		checkEndpoint(t, request, body, w)
		if most := 4096 + 8*(len(target)+len(body)); w.Code >= 400 && w.Body.Len() > most {
			t.Errorf("the refusal has %d bytes, want at most %d", w.Body.Len(), most)
		}
		if most := 2 * int(fuzzLimits.Answer); strings.Contains(w.Header().Get("Content-Type"), "json") && w.Body.Len() > most {
			t.Errorf("the response has %d bytes, want at most %d", w.Body.Len(), most)
		}
	})
}

// addEndpoints adds requests to all endpoints, about all features.
func addEndpoints(f *testing.F, r *features.Registry) {
	const keys = `"user": "u1", "device": "d1", "n": 1, "ok": false, "seen": 1532519999999, "amount": 10.25, "ip_c": "10.0.1.0"`
	const parameters = "user=u1&device=d1&n=1&ok=false&seen=1532519999999&amount=10.25&ip_c=10.0.1.0"
	for _, feature := range r.Features {
		members, member := "", ""
		if feature.Membership() == aggregate.MembersRequired {
			members, member = `, "members": [1, 2]`, "&member=1"
			if feature.Call.Type == value.String {
				members, member = `, "members": ["m1", "m9"]`, "&member=m1"
			}
		}
		var own []string
		for _, parameter := range strings.Split(parameters, "&") {
			if key, _, _ := strings.Cut(parameter, "="); strings.Contains(" "+strings.Join(feature.By, " ")+" ", " "+key+" ") {
				own = append(own, parameter)
			}
		}
		f.Add("POST", queryPath, "", fmt.Sprintf(`{"features": [%q], "entities": [{%s}]%s}`, feature.Name, keys, members))
		f.Add("GET", "/v1/features/"+feature.Name+"?"+strings.Join(own, "&")+member+"&at=2018-07-25T05:21:16Z", "", "")
		f.Add("GET", "/v1/timeline/"+feature.Name+"?"+strings.Join(own, "&"), "", "")
		f.Add("POST", feastPath, "", fmt.Sprintf(`{"features": ["v:%s"], "entities": {"user": ["u1", "x"], "device": ["d1", "d2"]}}`, feature.Name))
	}
	const one = `{"stream": "transaction", "event": {"id": "t99", "ts": 1532520000000, "user": "u1", "device": "d9", "merchant": "m1",
		"amount": "1.5", "place": {"lat": 1, "lon": 2}, "n": -1, "rate": 1e300, "ok": true, "seen": 0}}`
	const login = `{"stream": "login", "event": {"type": "login", "at": "2018-07-25T12:00:00Z", "user": "u1", "ip": "10.0.0.1"}}`
	for _, rest := range []string{
		`"pending": ` + one, `"pending": [` + one + `, ` + login + `], "at": 1532519999000`, `"pending": []`,
		`"wait_for": {"topic": "logins", "partition": 3, "offset": 1}`,
		`"wait_for": {"topic": "transactions", "partition": 0, "offset": 11, "timeout_ms": 1}`,
		`"at": "1970-01-01T00:00:00Z"`, `"at": 0`, `"at": 1564055999999`,
		`"members": {"numbers_seen": [7, 1e2], "rates_seen": [0.5, -0.0]}, "features": ["numbers_seen", "rates_seen"]`,
	} {
		f.Add("POST", queryPath, "", `{"service": "some", "entities": [{`+keys+`}, {"user": "nobody"}], `+rest+`}`)
	}
	for _, test := range answers {
		f.Add(test.method, test.target, "", test.body)
	}
	for _, test := range refusals {
		f.Add(test.method, test.target, "", test.body)
	}
	for _, path := range []string{
		"/", "/healthz", "/readyz", "/metrics", "/openapi.yaml", "/v1/features", "/v1/status", "/page/page.css", "/page/nothing",
		"/v1//query", "/v1/features/../status", "/v1/features/%2e%2e", "/v1/features/a%2fb", "*", "http://weir/v1/status",
	} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "CONNECT"} {
			f.Add(method, path, "Accept-Encoding: gzip\r\nRange: bytes=9-1\r\nIf-Match: x\r\n", "")
		}
	}
	f.Add("POST", queryPath, "Content-Encoding: gzip\r\nContent-Type: text/plain", "{}")
	f.Add("POST", feastPath, "", `{"feature_service": "some", "entities": {"user": ["u1"]}, "full_feature_names": true}`)
}

// checkEndpoint compares a response with /openapi.yaml and, if it is not JSON, with the purpose of
// the path.
func checkEndpoint(t *testing.T, request *http.Request, body string, w *httptest.ResponseRecorder) {
	t.Helper()
	method := request.Method
	if method == http.MethodHead { // net/http omits its body
		method = http.MethodGet
	}
	contentType := w.Header().Get("Content-Type")
	if contentType == "application/json" {
		asked := request.URL.EscapedPath()
		if clean := path.Clean("/" + asked); asked != clean && asked != clean+"/" {
			checkContractOf(t, method, "", body, w) // not a path of the document
			return
		}
		// An escaped slash is part of a name.
		asked, err := url.PathUnescape(strings.NewReplacer("%2f", "_", "%2F", "_").Replace(asked))
		if err != nil {
			t.Fatal(err)
		}
		checkContractOf(t, method, asked, body, w)
		return
	}
	kind, ok := map[string]string{"/": "text/html", "/metrics": "text/plain", "/openapi.yaml": "application/yaml"}[request.URL.Path]
	if !ok && strings.HasPrefix(request.URL.Path, "/page/") {
		kind, ok = "", true
	}
	if !ok || method != http.MethodGet || w.Code != http.StatusOK && w.Code != http.StatusNotModified || !strings.HasPrefix(contentType, kind) {
		t.Errorf("%s %s: unexpected status %d or Content-Type %q", method, request.URL.Path, w.Code, contentType)
	}
}

// allocated returns how many bytes the process has allocated so far.
func allocated() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}
