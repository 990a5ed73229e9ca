package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/materialize"
	redisstore "github.com/weir-stream/weir/store/redis"
)

const trainingDefinitions = `
streams:
  pay:
    topic: pay
    timestamp: at
    id: id
    fields: {user: string, amount: decimal}
features:
  paid: SUM(1h, pay, amount, user)
`

const trainingEvents = "id,at,user,amount\na,1700000000000,u,1.1\nb,1700000001000,u,2\n"

// writeFile creates a file in a folder; if its name ends in .gz, it is compressed.
func writeFile(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var out io.WriteCloser = file
	switch filepath.Ext(name) {
	case ".gz":
		out = gzip.NewWriter(file)
	case ".zst":
		if out, err = zstd.NewWriter(file); err != nil {
			t.Fatal(err)
		}
	}
	_, err = io.WriteString(out, text)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var in io.Reader = file
	switch filepath.Ext(path) {
	case ".gz":
		in, err = gzip.NewReader(file)
	case ".zst":
		in, err = zstd.NewReader(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMaterialize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", trainingDefinitions)
	lines := `{"id":"a","at":1700000000000,"user":"u","amount":1.1}` + "\n" + `{"id":"b","at":1700000001000,"user":"u","amount":2}`
	for _, input := range []string{
		writeFile(t, dir, "in.csv", trainingEvents), "pay=" + writeFile(t, dir, "in.csv.gz", trainingEvents),
		writeFile(t, dir, "in.ndjson", lines), writeFile(t, dir, "in.ndjson.gz", lines), writeFile(t, dir, "in.ndjson.zst", lines),
	} {
		for _, output := range []string{"out.csv", "out.csv.gz", "out.csv.zst"} {
			output = filepath.Join(dir, output)
			p := start(t, "materialize", "--features", definitions, "--stream", "pay", "--input", input, "--output", output, "--columns", "amount,paid")
			if err := p.wait(t); err != nil {
				t.Fatal(input, err)
			}
			if got, want := readFile(t, output), "id,at,user,amount,paid\na,1700000000000,u,1.1,1.1\nb,1700000001000,u,2,3.1\n"; got != want {
				t.Errorf("%s to %s:\n%s\nwant\n%s", input, output, got, want)
			}
			if want := regexp.MustCompile(`^2 rows of 2 events in \S+, \d+/s; 0 values reached a cap\n$`); !want.MatchString(p.err.String()) {
				t.Errorf("standard error is %q, want %s", p.err.String(), want)
			}
		}
	}
}

// With the secret of a namespace, estimates of runs agree to the digit; without it, each run has its own.
func TestMaterializeWithTheSecretOfANamespace(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), redistest.Embedded(t)
	definitions := writeFile(t, dir, "features.yaml", strings.Replace(trainingDefinitions, "SUM(1h, pay, amount, user)", "APPROX_COUNT_DISTINCT(1h, pay, user, amount)", 1))
	var events strings.Builder
	events.WriteString("id,at,user,amount\n")
	for i := range 3000 {
		fmt.Fprintf(&events, "%d,1700000000000,u,%d\n", i, i)
	}
	input := writeFile(t, dir, "in.csv", events.String())
	run := func(more ...string) (string, error) {
		return weir(t, append([]string{"materialize", "--features", definitions, "--stream", "pay", "--input", input, "--output", "-", "--redis.addresses", server.Addr()}, more...)...)
	}
	if _, err := run("--namespace-secret"); err == nil || message(err) != `weir: --namespace-secret: namespace "weir" has not been created` {
		t.Errorf("without a namespace: error %v", err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	if err := redisstore.New(client, config.Default().Namespace, config.Default().Shards).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for range 4 {
		out, err := run("--namespace-secret")
		if err != nil {
			t.Fatal(err)
		}
		rows[out]++
	}
	if len(rows) != 1 {
		t.Errorf("four runs with one secret have %d outputs", len(rows))
	}
	if out, err := run(); err != nil || rows[out] > 0 {
		t.Errorf("a run with a secret of its own has the same estimates; error %v", err)
	}
}

// Other tools can read the Parquet file.
func TestMaterializeParquet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definitions, input := writeFile(t, dir, "features.yaml", trainingDefinitions), writeFile(t, dir, "in.csv", trainingEvents)
	output := filepath.Join(dir, "out.parquet")
	if _, err := weir(t, "materialize", "--features", definitions, "--stream", "pay", "--input", input, "--output", output); err != nil {
		t.Fatal(err)
	}
	type row struct {
		ID   string    `parquet:"id"`
		At   time.Time `parquet:"at,timestamp(millisecond)"`
		User *string   `parquet:"user,optional"`
		Paid *float64  `parquet:"paid,optional"`
	}
	rows, err := parquet.ReadFile[row](output)
	if err != nil {
		t.Fatal(err)
	}
	paid, user := []float64{1.1, 3.1}, "u"
	if diff := cmp.Diff([]row{{"a", time.UnixMilli(1700000000000).UTC(), &user, &paid[0]}, {"b", time.UnixMilli(1700000001000).UTC(), &user, &paid[1]}}, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMaterializeBadUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "features.yaml", trainingDefinitions)
	writeFile(t, dir, "in.csv", trainingEvents)
	writeFile(t, dir, "bad.csv", trainingEvents+"c,1700000002000,u,x\n")
	writeFile(t, dir, "great.csv", trainingEvents+"c,1700000002000,u,20000000000000000\n")
	writeFile(t, dir, "old.parquet", "PAR1")
	if err := os.WriteFile(filepath.Join(dir, "plain.csv.gz"), []byte(trainingEvents), 0o600); err != nil {
		t.Fatal(err)
	}
	old := writeFile(t, dir, "out.csv", "what was there")
	for _, b := range []struct{ args, want string }{
		{"", `weir: required flag(s) "output" not set`},
		{"--output DIR/out.csv", "weir: at least one of the flags in the group [input from-topics] is required"},
		{"--output DIR/out.csv --from-topics --input DIR/in.csv", "weir: if any flags in the group [input from-topics] are set none of the others can be; [from-topics input] were all set"},
		{"--output DIR/out.csv --from-topics --features DIR/features.yaml --since 2026-01-01T00:00:00Z --until 1700000000000",
			`weir: --from-topics: --until 1700000000000 is not after --since 2026-01-01T00:00:00Z`},
		{"--output DIR/out.csv --input DIR/in.csv --until 1h", "weir: if any flags in the group [input until] are set none of the others can be; [input until] were all set"},
		{"--output DIR/out.csv --from-topics --features DIR/features.yaml --since yesterday",
			`weir: --from-topics: --since: "yesterday" is neither a moment such as 2026-01-31T23:59:59Z nor a time ago such as 24h`},
		{"--features DIR/none.yaml --stream pay --input DIR/in.csv --output DIR/out.csv", "--features: features names DIR/none.yaml, which cannot be read: no such file or directory"},
		{"--features DIR --stream pa --input DIR/in.csv --output DIR/out.csv", `weir: --stream: unknown stream "pa"; did you mean "pay"?`},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/out.csv --columns paid,usr", `weir: --columns: unknown feature or field "usr" of stream pay; did you mean "user"?`},
		{"--features DIR --stream pay --input DIR/none.csv --output DIR/out.csv", "weir: --input: open DIR/none.csv: no such file or directory"},
		{"--features DIR --stream pay --input DIR/features.yaml --output DIR/out.csv", "weir: --input: DIR/features.yaml is none of .csv, .ndjson, .avro and .parquet, the first two also .gz or .zst"},
		{"--features DIR --stream pay --input DIR/plain.csv.gz --output DIR/out.csv", "weir: DIR/plain.csv.gz: gzip: invalid header"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/out.txt", "weir: --output: DIR/out.txt is none of .csv, .csv.gz, .csv.zst and .parquet"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/out.gz", "weir: --output: DIR/out.gz is none of .csv, .csv.gz, .csv.zst and .parquet"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/out.parquet.gz", "weir: --output: DIR/out.parquet.gz: a .parquet is compressed inside; leave out .gz"},
		{"--features DIR --stream pay --input DIR/in.parquet --output DIR/out.csv", "weir: --input: open DIR/in.parquet: no such file or directory"},
		{"--features DIR --stream pay --input DIR/old.parquet --output DIR/out.csv", "weir: DIR/old.parquet: this is not a Parquet file, or not all of one: reading magic footer of parquet file: readat DIR/old.parquet: negative offset (read: 0)"},
		{"--features DIR --input login=DIR/in.csv --output DIR/out.csv", `weir: --input: login=DIR/in.csv: unknown stream "login"; known: pay`},
		{"--features DIR --input DIR/none/*.csv --output DIR/out.csv", "weir: --input: DIR/none/*.csv: there is no .csv, .ndjson, .avro or .parquet"},
		{"--features DIR --input DIR/[.csv --output DIR/out.csv", "weir: --input: DIR/[.csv: syntax error in pattern"},
		{"--features DIR --input - --input-format parquet --output DIR/out.csv", "weir: --input: the standard input cannot be a Parquet file, which is read from its end: name the file"},
		{"--features DIR --input - --input-format cvs --output DIR/out.csv", "weir: --input: --input-format cvs: expected ndjson or csv"},
		{"--features DIR --input - --spine - --output DIR/out.csv", "weir: --spine: the standard input is an --input already"},
		{"--features DIR --input - --input - --output DIR/out.csv", "weir: --input: the standard input is an --input already"},
		{"--features DIR --input DIR/in.csv --output - --output-format xls", "weir: --output-format xls: expected csv or parquet"},
		{"--features DIR --input DIR/in.csv --output DIR/out.csv --as seen", "weir: --as seen: expected events or served"},
		{"--features DIR --input DIR/in.csv --output DIR/out.csv --memory much", "weir: --memory: much is not a size such as 4096, 512KiB or 1MiB"},
		{"--features DIR --input DIR/in.csv --output DIR/out.csv --service risk", `weir: --service: unknown service "risk"`},
		{"--features DIR --input DIR/in.csv --spine DIR/in.csv --time-column when --output DIR/out.csv",
			`weir: --spine: DIR/in.csv:1: the moments of the rows: unknown column "when"; known: amount, at, id, user; --time-column names another`},
		{"--features DIR --input DIR/in.csv --spine DIR/in.csv --stream pay --output DIR/out.csv", "weir: if any flags in the group [spine stream] are set none of the others can be; [spine stream] were all set"},
		{"--features DIR --input DIR/in.csv --spine DIR/bad.csv --output DIR/bad.csv", "weir: --output: DIR/bad.csv is the input"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/out.parquet --decimals double", `weir: --decimals: unknown type "double"; known: decimal, float, string`},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/in.csv", "weir: --output: DIR/in.csv is the input"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/none/out.csv", "weir: --output: open DIR/none/out.csv: no such file or directory"},
		{"--features DIR --stream pay --input DIR/bad.csv --output DIR/out.parquet", `weir: DIR/bad.csv:4: stream pay: amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string that is not one`},
		{"--features DIR --stream pay --input DIR/great.csv --output DIR/out.parquet --decimals decimal --columns amount",
			"weir: DIR/great.csv:4: column amount: 20000000000000000 has more than the 18 digits of a decimal in Parquet, 2 of them after the decimal point; write decimals as float or string"},
		{"--features DIR --stream pay --input DIR/bad.csv --output DIR/out.csv", `weir: DIR/bad.csv:4: stream pay: amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string that is not one`},
	} {
		t.Run(b.args, func(t *testing.T) {
			_, err := weir(t, append([]string{"materialize"}, strings.Fields(strings.ReplaceAll(b.args, "DIR", dir))...)...)
			if err == nil {
				t.Fatal("no error")
			}
			if got, want := message(err), strings.ReplaceAll(b.want, "DIR", dir); got != want {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
		})
	}
	if got := readFile(t, old); got != "what was there" {
		t.Errorf("after a failure the output is %q, want it unchanged", got)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 7 {
		t.Errorf("a failure has left files behind: %v, %v", files, err)
	}
}

const twoStreamDefinitions = `
streams:
  pay: {topic: pay, timestamp: at, id: id, fields: {user: string, amount: decimal}}
  login: {topic: login, timestamp: at, fields: {user: string, ip: string}}
features:
  paid: SUM(1h, pay, amount, user)
  logins: COUNT(1h, login, user)
services: {risk: [paid, logins]}
`

// A service over two streams is materialized from files of any format, folders and patterns, for
// the rows of a spine or the events of a stream, from standard input and to standard output.
func TestMaterializeTwoStreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", twoStreamDefinitions)
	folder := filepath.Join(dir, "logins")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder, "1.csv.gz", "at,user,ip\n1700000000500,u,i\n")
	writeFile(t, folder, "2.ndjson", `{"at":1700000000000,"user":"u","ip":"i"}`)
	writeFile(t, folder, "notes.txt", "of no concern")
	events := writeFile(t, dir, "pay.csv", trainingEvents)
	spine := writeFile(t, dir, "labels.csv", "user,when,label\nu,2023-11-14T22:13:20Z,1\nu,1700000001000,0\n")
	labels := "user,when,label,paid,logins\nu,2023-11-14T22:13:20Z,1,1.1,1\nu,1700000001000,0,3.1,2\n"
	rows := "id,at,user,paid,logins\na,1700000000000,u,1.1,1\nb,1700000001000,u,3.1,2\n"
	writeFile(t, dir, "arrived.csv", "id,at,user,amount,arrived\na,1700000000000,u,1,1700000002000\n")
	writeFile(t, dir, "moments.csv", "user,at\nu,1700000001000\nu,1700000002000\n")
	for _, c := range []struct{ args, stdin, want string }{
		{"--service risk --input pay=DIR/pay.csv --input login=DIR/logins --spine DIR/labels.csv --time-column when", "", labels},
		{"--service risk --input pay=DIR/pay.csv --input login=DIR/logins/* --spine - --input-format csv --time-column when", readFile(t, spine), labels},
		{"--service risk --stream pay --input DIR/pay.csv --input login=DIR/logins", "", rows},
		{"--service risk --stream pay --input login=DIR/logins --input - --input-format csv", readFile(t, events), rows},
		{"--columns paid --stream pay --exclude-current --input -", `{"topic":"pay","key":"u","value":{"id":"a","at":1700000000000,"user":"u","amount":1}}` + "\n" +
			`{"topic":"login","key":"u","value":{"at":1700000000000,"user":"u"}}` + "\n" + `{"topic":"pay","key":"u","value":{"id":"b","at":1700000000001,"user":"u","amount":1}}`,
			"id,at,user,paid\na,1700000000000,u,0\nb,1700000000001,u,1\n"},
		{"--columns paid --input pay=DIR/arrived.csv --spine DIR/moments.csv --as served --record-time arrived", "",
			"user,at,paid\nu,1700000001000,0\nu,1700000002000,1\n"},
	} {
		p := startWith(t, strings.NewReader(c.stdin), append([]string{"materialize", "--features", definitions, "--output", "-"},
			strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)...)
		if err := p.wait(t); err != nil {
			t.Fatal(c.args, err)
		}
		if got := p.out.String(); got != c.want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", c.args, got, c.want)
		}
	}
	out, err := weir(t, "materialize", "--features", definitions, "--stream", "pay", "--columns", "paid", "--input", events, "--output", "-", "--output-format", "parquet")
	if err != nil || !strings.HasPrefix(out, "PAR1") {
		t.Errorf("the output is not Parquet: %v\n%s", err, out)
	}
	_, err = weir(t, "materialize", "--features", definitions, "--input", "pay="+events, "--input", "login="+folder, "--output", "-")
	if want := "weir: say what the rows are: --spine FILE, or the events of --stream NAME"; err == nil || message(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// The output of `weir generate` makes a training set of the shipped service.
func TestMaterializeGenerated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	events, output := filepath.Join(dir, "events.ndjson"), filepath.Join(dir, "out.parquet")
	if _, err := weir(t, "generate", "--events", "2000", "--output", events); err != nil {
		t.Fatal(err)
	}
	p := start(t, "materialize", "--features", "../../config/features", "--service", "payment_risk", "--columns", "amount,status",
		"--stream", "transaction", "--input", events, "--output", output, "--quality", "--memory", "16KiB")
	if err := p.wait(t); err != nil || !strings.Contains(p.err.String(), " sorted on disk\n") {
		t.Fatal(err, p.err.String())
	}
	type row struct {
		ID       string   `parquet:"event_id"`
		Amount   *int64   `parquet:"amount,optional,decimal(2:18)"`
		Payments *int64   `parquet:"device_tx_7d,optional"`
		Users    *int64   `parquet:"device_users_30d,optional"`
		Status   *string  `parquet:"device_users_30d_status,optional"`
		Error    *float64 `parquet:"device_users_30d_error,optional"`
	}
	rows, err := parquet.ReadFile[row](output)
	if err != nil || len(rows) < 1000 {
		t.Fatal(len(rows), err)
	}
	met := 0
	for _, r := range rows {
		if r.Users != nil && *r.Users > 0 && *r.Payments > 0 && *r.Status == "PRESENT" && *r.Error == 0 {
			met++
		}
	}
	if met < len(rows)/4 {
		t.Errorf("%d of %d rows have both logins and payments, want a quarter", met, len(rows))
	}
}

// A terminal gets a bar that is updated in place, other outputs an occasional line. Both show the
// time left.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, bar := range []bool{true, false} {
		var screen strings.Builder
		now := time.Unix(1_700_000_000, 0)
		p := newProgress(&screen, func() time.Time { return now })
		summary := "2 rows of 3 events in 40s, 0/s; 1 value reached a cap; 4 values may be greater, since events came late; " +
			"5 values older than the past that is kept; 6 events too late for some feature; 7 events of no such stream; 8 events set aside, the first: in:1: bad; 2 MiB sorted on disk\n"
		want := " 50%  reading: 200000 events, 10000/s, 20s left\nreading: 200000 events, 6667/s\n 25%  making: 1000 rows, 100/s, 30s left\n" + summary
		if bar {
			p.bar, p.every = true, barEvery
			want = "\r[===============               ]  50%  reading: 200000 events, 10000/s, 20s left\x1b[K\rreading: 200000 events, 6667/s\x1b[K" +
				"\r[=======                       ]  25%  making: 1000 rows, 100/s, 30s left\x1b[K\r\x1b[K" + summary
		}
		at := func(seconds int) { now = time.Unix(1_700_000_000+int64(seconds), 0) }
		at(20)
		p.show(materialize.Progress{Reading: true, Share: 0.5, Events: 200_000})
		p.show(materialize.Progress{Reading: true, Share: 0.6, Events: 200_001}) // too early to show more
		at(30)
		p.show(materialize.Progress{Reading: true, Share: -1, Events: 200_000})
		p.show(materialize.Progress{Events: 200_000})
		at(40)
		p.show(materialize.Progress{Share: 0.25, Events: 200_000, Rows: 1000})
		p.end(materialize.Summary{
			Rows: 2, Events: 3, Capped: 1, Uncertain: 4, OutsideMaxAge: 5, Late: 6, Passed: 7, SetAside: 8, FirstSetAside: errors.New("in:1: bad"), Spilled: 2 << 20,
		}, nil)
		if screen.String() != want {
			t.Errorf("bar %v\ngot  %q\nwant %q", bar, screen.String(), want)
		}
	}
}

// Topics make the same training set as the files that were written to them: without aborted records and without records
// that cannot be used.
func TestMaterializeFromTopics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	events := filepath.Join(dir, "events.ndjson")
	broker := kafkatest.Embedded(t, map[string]int{generate.Logins: 2, generate.Transactions: 3}).ListenAddrs()[0]
	for _, to := range [][]string{{"--output", events}, {"--brokers", broker}} {
		if _, err := weir(t, append([]string{"generate", "--events", "2000", "--seed", "7"}, to...)...); err != nil {
			t.Fatal(err)
		}
	}
	rows := []string{"materialize", "--features", "../../config/features", "--service", "payment_risk", "--stream", "transaction", "--output", "-"}
	want, err := weir(t, append(rows, "--input", events)...)
	if err != nil || strings.Count(want, "\n") < 1000 {
		t.Fatal(err, want)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.TransactionalID("t"), kgo.DefaultProduceTopic(generate.Transactions))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	event, _, _ := strings.Cut(want[strings.Index(want, "\n")+1:], ",")
	for _, c := range []struct {
		value string
		end   kgo.TransactionEndTry
	}{{fmt.Sprintf(`{"event_id":%q}`, event), kgo.TryAbort}, {"{", kgo.TryCommit}} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), kgo.StringRecord(c.value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(t.Context(), c.end); err != nil {
			t.Fatal(err)
		}
	}
	fromTopics := func(more ...string) (string, string) {
		t.Helper()
		p := start(t, append(append(rows, "--from-topics", "--kafka.brokers", broker), more...)...)
		if err := p.wait(t); err != nil {
			t.Fatal(err)
		}
		return p.out.String(), p.err.String()
	}
	got, said := fromTopics()
	sorted := func(rows string) []string { return slices.Sorted(strings.Lines(rows)) } // in one millisecond the order differs
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("(-files +topics):\n%s", diff)
	}
	aside := regexp.MustCompile(`; 1 event set aside, the first: transactions/\d at offset \d+: stream transaction: malformed JSON`)
	if !aside.MatchString(said) || strings.Contains(said, "incomplete") {
		t.Errorf("standard error is %q, want the records set aside and no incomplete values", said)
	}
	half := time.UnixMilli(generate.New(7, generate.Demo()).Next().Timestamp).Add(49 * time.Second)
	got, said = fromTopics("--since", half.UTC().Format(time.RFC3339))
	if n, all := strings.Count(got, "\n"), strings.Count(want, "\n"); n < all/10 || n > all*9/10 || !strings.Contains(said, " values incomplete, since the topics lack events that they need") {
		t.Errorf("%d of %d rows since %v; standard error is %q", n, all, half, said)
	}
	// Each record is on one side of a moment; --since reads some older ones behind the first.
	after := strings.Count(got, "\n") - 1
	got, said = fromTopics("--until", strconv.FormatInt(half.UnixMilli(), 10))
	if before, all := strings.Count(got, "\n")-1, strings.Count(want, "\n")-1; before > all*9/10 || before+after < all || strings.Contains(said, "incomplete") {
		t.Errorf("%d rows until %v and %d since then, of %d; standard error is %q", before, half, after, all, said)
	}
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	spine := writeFile(t, t.TempDir(), "spine.csv", "user_id,at\nu000001,"+future+"\n")
	_, err = weir(t, "materialize", "--features", shipped, "--columns", "user_tx_1h", "--spine", spine, "--output", "-", "--from-topics", "--kafka.brokers", broker)
	if want := "weir: " + spine + ":2: the row is of " + future + ", and only what was there when the command began, at "; err == nil || !strings.HasPrefix(message(err), want) {
		t.Errorf("a row of the future: got %v, want %s", err, want)
	}
	_, err = weir(t, append(rows, "--from-topics", "--kafka.brokers", kafkatest.Embedded(t, nil).ListenAddrs()[0])...)
	if want := "weir: --from-topics: topic logins: "; err == nil || !strings.HasPrefix(message(err), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
