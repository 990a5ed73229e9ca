package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// weir diff compares folders or a git revision, and serves as a gate in CI.
func TestDiff(t *testing.T) {
	dir, temporary := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	t.Setenv("TMPDIR", temporary) // of this test alone
	if err := os.Mkdir("features", 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "features", "pay.yaml", twoStreamDefinitions)
	writeFile(t, "features", "pay_test.yaml", "tests: none")
	inGit(t, dir, "init", "-q")
	inGit(t, dir, "add", ".")
	inGit(t, dir, "commit", "-q", "-m", "first")
	for _, old := range []string{"HEAD:features", "HEAD:features/pay.yaml", "features"} {
		out, err := weir(t, "diff", old, "features")
		if err != nil || out != "nothing changes but perhaps descriptions\n" {
			t.Errorf("compared with %s, want no change: error %v, output\n%s", old, err, out)
		}
	}
	writeFile(t, "features", "pay.yaml", strings.Replace(twoStreamDefinitions, "SUM(1h", "SUM(1h, pay, amount, user, where='amount > 1')\n  more: SUM(2h", 1))
	out, err := weir(t, "diff", "HEAD:features", "features")
	if err == nil || exitCode(err) != 2 || message(err) != "weir: services answer with 1 feature, which would lose state: paid" {
		t.Errorf("lost state: got error %v, exit code %d; want that of paid and 2", err, exitCode(err))
	}
	if !strings.Contains(out, "  ~ paid: starts over from nothing, and answers less than now: complete once it is filled, or after 1h (in risk)\n") || !strings.Contains(out, "  + more: ") {
		t.Errorf("the report lacks the changes:\n%s", out)
	}
	out, err = weir(t, "diff", "HEAD:features", "features", "--json")
	var report struct {
		Features []struct{ Name, State string }
	}
	if exitCode(err) != 2 || json.Unmarshal([]byte(out), &report) != nil || len(report.Features) != 2 || report.Features[1].State != "none" {
		t.Errorf("unexpected report in JSON: error %v, output\n%s", err, out)
	}

	writeFile(t, "features", "pay.yaml", "streams: {")
	inGit(t, dir, "commit", "-q", "-am", "bad")
	for _, b := range []struct{ args, want string }{
		{"HEAD~1:features HEAD:features", "HEAD:features/pay.yaml:1:1: bad YAML: did not find expected node content; close the brackets or braces, and quote a text that contains any of , [ ] { }"},
		{"none:features features", "none:features: cannot read definitions: fatal: not a valid object name: none"},
		{"HEAD:nothing features", "HEAD:nothing: cannot read definitions: fatal: pathspec 'nothing' did not match any files"},
		{"nowhere features", "nowhere: cannot read definitions: no such file or directory"},
		{"features", "weir: accepts 2 arg(s), received 1; usage: weir diff OLD NEW [flags]"},
	} {
		_, err := weir(t, append([]string{"diff"}, strings.Fields(b.args)...)...)
		if err == nil || exitCode(err) != 1 || message(err) != b.want {
			t.Errorf("%s\ngot  %v\nwant %s", b.args, err, b.want)
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("temporary folders are left behind: %v, %v", left, err)
	}
}

// Definitions of a revision name schemas in other folders, seen from the repository's root or from a folder of it.
func TestDiffWithSchemasElsewhere(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"features", "schemas"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const schema = `{"type": "record", "name": "Pay", "fields": [{"name": "at", "type": "long"}, {"name": "user", "type": "string"}]}`
	writeFile(t, filepath.Join(dir, "schemas"), "pay.avsc", schema)
	writeFile(t, filepath.Join(dir, "features"), "pay.yaml", `
streams: {pay: {topic: payments, timestamp: at, format: {type: avro, schema: ../schemas/pay.avsc}, fields: {user: string}}}
features: {paid: "COUNT(1h, pay, user)"}
`)
	inGit(t, dir, "init", "-q")
	inGit(t, dir, "add", ".")
	inGit(t, dir, "commit", "-q", "-m", "first")
	writeFile(t, filepath.Join(dir, "schemas"), "pay.avsc", `{"type": "string"}`)
	for folder, args := range map[string][]string{dir: {"HEAD:features", "HEAD:features/pay.yaml"}, filepath.Join(dir, "features"): {"HEAD:.", "HEAD:pay.yaml"}} {
		t.Chdir(folder)
		if out, err := weir(t, append([]string{"diff"}, args...)...); err != nil || out != "nothing changes but perhaps descriptions\n" {
			t.Errorf("%s, %v: error %v, output\n%s", folder, args, err, out)
		}
	}
	t.Chdir(dir)
	_, err := weir(t, "diff", "HEAD:features", "features")
	if want := "features/pay.yaml:2:78: the schema is of type string; records are read from one of type record"; err == nil || message(err) != want {
		t.Errorf("with a schema that is not a record: got %v, want %s", err, want)
	}
}

// inGit runs a command of git in a folder, without settings of the machine.
func inGit(t *testing.T, folder string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
}

// weir diff compares with the definitions that a server answers from at that time.
func TestDiffOfARunningServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := writeFile(t, dir, "tokens", oneToken+" ci author\n"+anotherToken+" engine query\n")
	admin, query := writeFile(t, dir, "admin", oneToken), writeFile(t, dir, "query", anotherToken)
	deployed, wanted := filepath.Join(dir, "deployed"), filepath.Join(dir, "wanted")
	for _, folder := range []string{deployed, wanted} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, folder, "pay.yaml", twoStreamDefinitions)
	}
	for _, role := range []string{"api", "processor"} {
		p := start(t, "run", "--roles", role, "--features", deployed, "--api.listen", "127.0.0.1:0", "--api.tokens_file", tokens,
			"--redis.addresses", redistest.Embedded(t).Addr(), "--kafka.brokers", "127.0.0.1:1")
		base := p.address(t)
		const same = "nothing changes but perhaps descriptions\n"
		for _, args := range [][]string{{base, wanted}, {wanted, base + "/"}, {base, base}} {
			if out, err := weir(t, append([]string{"diff", "--token-file", admin}, args...)...); err != nil || out != same {
				t.Errorf("%s, %s, want no change: error %v, output\n%s", role, args, err, out)
			}
		}
		for _, b := range []struct{ args, want string }{
			{"", "weir: " + base + ": a token is required in the header Authorization: Bearer <token>; --token-file needs a token of the scope author"},
			{"--token-file " + query, "weir: " + base + ": asking for /v1/definitions takes the scope author; you have query"},
			{"--token-file /none", "weir: --token-file: open /none: no such file or directory"},
		} {
			if _, err := weir(t, append([]string{"diff", base, wanted}, strings.Fields(b.args)...)...); err == nil || exitCode(err) != 1 || message(err) != b.want {
				t.Errorf("%s %s\ngot  %v\nwant %s", role, b.args, err, b.want)
			}
		}
		if role == "processor" {
			continue // without Kafka it loads no new definitions
		}
		writeFile(t, deployed, "pay.yaml", strings.Replace(twoStreamDefinitions, "SUM(1h", "SUM(2h", 1))
		testkit.Eventually(t, patience, "a loss of state", func() (bool, string) {
			out, err := weir(t, "diff", base, wanted, "--token-file", admin)
			return err == nil && strings.Contains(out, "SUM(2h, pay, amount, user) -> SUM(1h, pay, amount, user)"), fmt.Sprint(out, err)
		})
		writeFile(t, wanted, "pay.yaml", strings.Replace(twoStreamDefinitions, "SUM(1h, pay, amount, user)", "SUM(1h, pay, amount, user, where='amount > 1')", 1))
		_, err := weir(t, "diff", base, wanted, "--token-file", admin)
		if want := "weir: services answer with 1 feature, which would lose state: paid"; err == nil || exitCode(err) != 2 || message(err) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		writeFile(t, deployed, "pay.yaml", twoStreamDefinitions)
		writeFile(t, wanted, "pay.yaml", twoStreamDefinitions)
	}
}

// Some servers cannot return their definitions, or return some that cannot be compared.
func TestDiffOfOtherServers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeFile(t, folder, "pay.yaml", twoStreamDefinitions)
	answers := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/v1/definitions" {
				t.Errorf("got the request %s %s, want GET /v1/definitions", r.Method, r.URL.Path)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	away := httptest.NewServer(nil)
	away.Close()
	old := answers(404, `{"error":{"code":"unknown_path","message":"there is no path \"/v1/definitions\""}}`)
	foreign, page := answers(404, "404 page not found"), answers(200, "<html>")
	busy := answers(503, `{"error":{"code":"issuer_unavailable","message":"the token cannot be verified now: its issuer does not answer"}}`)
	bad := answers(200, `{"version":"v1","definitions":[{"path":"/etc/weir/a.yaml","text":"streams: {s: {topic: t, timestamp: at}}"}],"schemas":[]}`)
	const text = "streams: {s: {topic: t, timestamp: at, fields: {u: string}}}"
	newer := answers(200, `{"version":"v1","definitions":[{"path":"a.yaml","text":"`+text+`"}],"schemas":[]}`)
	meant := defined.Registry(t, text)
	for _, b := range []struct{ server, want string }{
		{old, "weir: " + old + " does not serve its definitions: its release is too old; compare with those that it was deployed with"},
		{foreign, "weir: " + foreign + "/v1/definitions answered 404 Not Found; is it a weir server?"},
		{busy, "weir: " + busy + ": the token cannot be verified now: its issuer does not answer"},
		{bad, bad + ": /etc/weir/a.yaml:1:11: stream \"s\" needs fields"},
		{away.URL, "weir: no answer from " + away.URL + ": nothing listens at " + strings.TrimPrefix(away.URL, "http://") + ": check the address, and that the server runs"},
		{page, "weir: " + page + "/v1/definitions did not answer in JSON; is it a weir server?"},
		{newer, "weir: " + newer + " answers from definitions of version v1, which mean " + meant.Version() + " to this release: use the weir of the server's release"},
		{"http://a b", `weir: bad address: "http://a b" is not an address such as http://weir:8080`},
	} {
		if _, err := weir(t, "diff", b.server, folder); err == nil || exitCode(err) != 1 || message(err) != b.want {
			t.Errorf("%s\ngot  %v\nwant %s", b.server, message(err), b.want)
		}
	}
}

// weir diff --backfill asks Kafka how many records the new state is filled from.
func TestDiffBackfill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := writeFile(t, dir, "old.yaml", twoStreamDefinitions)
	wanted := writeFile(t, dir, "wanted.yaml", strings.Replace(twoStreamDefinitions, "features:\n",
		"  other: {topic: others, timestamp: at, fields: {user: string}}\nfeatures:\n  others: COUNT(1d, other, user)\n  day: SUM(1d, pay, amount, user)\n  ever: COUNT(lifetime, pay, user)\n  more: COUNT(2d, login, ip)\n", 1))
	flags, _ := servers(t, map[string]int{"pay": 2, "login": 1})
	brokers := flags[6:8]
	writer := generate.NewKafkaWriter(&kafka.Transport{}, brokers[1:])
	defer writer.Close()
	now := time.Now()
	for i, age := range []time.Duration{500 * time.Hour, 400 * time.Hour, time.Hour, time.Minute} {
		for _, topic := range []string{"pay", "login"} {
			if err := writer.WriteMessages(t.Context(), kafka.Message{Topic: topic, Key: []byte{byte(i)}, Value: []byte("{}"), Time: now.Add(-age)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	args := append([]string{"diff", old, wanted, "--backfill", "--backfill.rate", "0.25"}, brokers...)
	const want = `backfill, about 2s with 0.25 of a core; processes share the partitions
  login: up to 2 records, about 1s, for more
  others: there is no such topic yet, for others
  pay: up to 4 records, about 1s, for day, ever
`
	if out, err := weir(t, args...); err != nil || !strings.HasSuffix(out, "\n"+want) {
		t.Errorf("error %v, output\n%s\nwant it to end with\n%s", err, out, want)
	}
	var report struct {
		Backfill struct {
			Rate   float64
			Topics []struct {
				Name    string
				Records int64
			}
		}
	}
	if out, err := weir(t, append(args, "--json")...); err != nil || json.Unmarshal([]byte(out), &report) != nil ||
		fmt.Sprint(report.Backfill) != "{0.25 [{login 2} {others 0} {pay 4}]}" {
		t.Errorf("unexpected backfill in JSON: error %v, %v; output\n%s", err, report.Backfill, out)
	}
	if out, err := weir(t, append([]string{"diff", old, old, "--backfill"}, brokers...)...); err != nil || out != "backfill: nothing is to be read\n" {
		t.Errorf("without a change: %v\n%s", err, out)
	}
	for _, b := range []struct{ args, want string }{
		{"--kafka.brokers 127.0.0.1:1", "weir: --backfill: read the topics: "},
		{"--backfill.rate 2", "--backfill.rate: backfill.rate 2 is not allowed: 0.01 to 1"},
		{"--config /none.yaml", "weir: settings: open /none.yaml: no such file or directory"},
	} {
		_, err := weir(t, append([]string{"diff", old, wanted, "--backfill", "--timeout", "5s"}, strings.Fields(b.args)...)...)
		if err == nil || exitCode(err) != 1 || !strings.HasPrefix(message(err), b.want) {
			t.Errorf("%s\ngot  %v\nwant %s", b.args, message(err), b.want)
		}
	}
}

// weir diff --memory counts entities in the store.
func TestDiffMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := writeFile(t, dir, "old.yaml", twoStreamDefinitions)
	wanted := writeFile(t, dir, "wanted.yaml", strings.Replace(twoStreamDefinitions, "features:\n", "features:\n  day: SUM(1d, pay, amount, user)\n", 1))
	flags, address := servers(t, nil)
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	registry, err := definition.Load(old)
	if err != nil {
		t.Fatal(err)
	}
	var group string
	for _, s := range registry.Series {
		if strings.Join(s.By, "+") == "user" {
			group = s.Group
		}
	}
	for i := range 3 {
		key := fmt.Sprintf("{weir:00}%s:u%d", group, i)
		if err := client.Set(t.Context(), key, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	const want = "memory, entities counted by their keys in Redis, all 3; bytes estimated as above\n  user: "
	if out, err := weir(t, append([]string{"diff", old, wanted, "--memory"}, flags[8:10]...)...); err != nil || !strings.Contains(out, want) || !strings.Contains(out, " MiB for 3 entities\n") {
		t.Errorf("the memory is not estimated: error %v, output\n%s", err, out)
	}
	_, err = weir(t, "diff", old, wanted, "--memory", "--timeout", "5s", "--redis.addresses", "127.0.0.1:1")
	if err == nil || exitCode(err) != 1 || !strings.HasPrefix(message(err), `weir: --memory: read the layout of namespace "weir": `) {
		t.Errorf("without Redis: %v", message(err))
	}
}
