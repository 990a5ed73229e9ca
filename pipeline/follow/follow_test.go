package follow

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/objectstore"
	"github.com/weir-stream/weir/pipeline/scan"
)

// fixture is a Follower of tables in a broker.
type fixture struct {
	testing.TB
	*Follower
	client *kgo.Client
	log    lines
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newFixture(t *testing.T, topics map[string]int) *fixture {
	brokers := []string{"127.0.0.1:1"}
	if topics != nil {
		brokers = kafkatest.Embedded(t, topics).ListenAddrs()
	}
	return followerOf(t, brokers)
}

func followerOf(t *testing.T, brokers []string) *fixture {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	f := &fixture{TB: t, client: client}
	f.Follower = New(Config{
		Kafka: func() (scan.Config, func(), error) {
			transport := new(kafka.Transport)
			return scan.Config{Transport: transport, Bootstrap: kafka.TCP(brokers...)}, transport.CloseIdleConnections, nil
		},
		Log: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
	t.Cleanup(f.Close)
	return f
}

// write writes a record with a key; without a value if that is empty.
func (f *fixture) write(topic string, partition int32, key, value string) {
	f.Helper()
	r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key)}
	if value != "" {
		r.Value = []byte(value)
	}
	if err := f.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
		f.Fatal(err)
	}
}

// ask sends a request about topics.
func (f *fixture) ask(r kmsg.Request) {
	f.Helper()
	if _, err := f.client.Request(context.Background(), r); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) take(tables string) *features.Table {
	f.Helper()
	r := defined.Registry(f, "tables: {m: "+tables+"}\n")
	f.Take(r.Tables)
	return r.Tables[0]
}

// value returns field v of a row, "none" for no row, or the error.
func (f *fixture) value(t *features.Table, key string) string {
	row, err := f.Find(t, key, 0)
	switch {
	case err != nil:
		return err.Error()
	case row == nil:
		return "none"
	}
	return string(row.Values[t.Rows.FieldIndex("v")].AppendText(nil))
}

func (f *fixture) becomes(t *features.Table, key, want string) {
	f.Helper()
	testkit.Eventually(f, 10*time.Second, "row "+key, func() (bool, string) {
		got := f.value(t, key)
		return got == want, got
	})
}

// whole waits until the table is whole.
func (f *fixture) whole(t *features.Table) {
	f.Helper()
	testkit.Eventually(f, 10*time.Second, "the table is whole", func() (bool, string) {
		err := f.Awaited([]*features.Table{t})
		return err == nil, fmt.Sprint(err)
	})
}

// Tables in topics have a series of bad records from the beginning, under changed definitions the same one.
func TestSeriesOfBadRecords(t *testing.T) {
	f := newFixture(t, nil)
	file := filepath.Join(t.TempDir(), "m.csv")
	const head = "# HELP weir_table_bad_records_total Records of tables that could not be read, so that their rows are missing, by table.\n" +
		"# TYPE weir_table_bad_records_total counter\n"
	for _, step := range []struct{ tables, want string }{
		{"{m: " + rowsOfT + ", n: {file: " + file + ", key: id, fields: {v: int}}}", "weir_table_bad_records_total{table=\"m\"} 0\n"},
		{
			"{m: {topic: t, key: id, fields: {v: string}}, o: " + rowsOfT + "}",
			"weir_table_bad_records_total{table=\"m\"} 1\nweir_table_bad_records_total{table=\"o\"} 0\n",
		},
		{"{o: " + rowsOfT + "}", "weir_table_bad_records_total{table=\"o\"} 0\n"},
	} {
		f.Take(defined.Registry(t, "tables: "+step.tables+"\n").Tables)
		if err := testutil.CollectAndCompare(f.metrics.bad, strings.NewReader(head+step.want)); err != nil {
			t.Errorf("%s: %v", step.tables, err)
		}
		f.metrics.bad.WithLabelValues("m").Inc()
	}
}

const rowsOfT = "{topic: t, key: id, fields: {v: int}}"

// A table in a topic has all rows of all partitions before it answers, and then takes what is written.
func TestTopic(t *testing.T) {
	f := newFixture(t, map[string]int{"t": 3})
	for i := range 300 {
		f.write("t", int32(i%3), fmt.Sprint(i), fmt.Sprintf(`{"id":"k%d","v":%d}`, i, i))
	}
	f.write("t", 0, "0", "")
	table := f.take(rowsOfT)
	f.whole(table)
	for key, want := range map[string]string{"k0": "none", "k1": "1", "k299": "299", "x": "none"} {
		if got := f.value(table, key); got != want {
			t.Errorf("row %s: got %s, want %s", key, got, want)
		}
	}
	f.write("t", 1, "1", `{"id":"k1","v":7}`)
	f.becomes(table, "k1", "7")
	f.write("t", 1, "1", "")
	f.becomes(table, "k1", "none")
	f.write("t", 2, "2", `{"id":"k2","v":"seven"}`)
	f.becomes(table, "k2", "none")
	testkit.Eventually(t, 10*time.Second, "the log says that a record is bad", func() (bool, string) { // a moment after its row is missing
		got := f.log.String()
		return strings.Contains(got, `"a record of a table cannot be read: its row is missing" table=m partition=t/2 offset=100`), got
	})
	if got := testutil.ToFloat64(f.metrics.bad.WithLabelValues("m")); got != 1 {
		t.Errorf("%v bad records, want 1", got)
	}
	if age := f.Age(table, time.Now()); age < 0 || age > time.Minute {
		t.Errorf("the table is %s old", age)
	}

	// Partitions that are added are read, too.
	grow, more := kmsg.NewPtrCreatePartitionsRequest(), kmsg.NewCreatePartitionsRequestTopic()
	more.Topic, more.Count = "t", 4
	grow.Topics, grow.TimeoutMillis = append(grow.Topics, more), 5000
	f.ask(grow)
	f.client.PurgeTopicsFromClient("t")
	f.write("t", 3, "new", `{"id":"new","v":9}`)
	f.becomes(table, "new", "9")

	// Tables that are the same after a change of the definitions go on; others are read.
	again := f.take(rowsOfT)
	if got := f.value(again, "new"); got != "9" {
		t.Errorf("after the same definitions: %s", got)
	}
	other := f.take("{topic: t, key: id, fields: {v: string}}")
	if got := f.value(again, "new"); got != "9" { // for the questions that are being answered
		t.Errorf("of the definitions before: %s", got)
	}
	f.becomes(other, "k2", "seven")
}

// A topic that was made again, with fewer partitions, is read again; until then the rows before answer.
func TestTopicMadeAgain(t *testing.T) {
	f := newFixture(t, map[string]int{"t": 2})
	f.write("t", 0, "a", `{"id":"a","v":1}`)
	f.write("t", 1, "b", `{"id":"b","v":1}`)
	table := f.take(rowsOfT)
	f.becomes(table, "a", "1")
	remove, removed := kmsg.NewPtrDeleteTopicsRequest(), kmsg.NewDeleteTopicsRequestTopic()
	removed.Topic = kmsg.StringPtr("t")
	remove.Topics, remove.TopicNames, remove.TimeoutMillis = append(remove.Topics, removed), []string{"t"}, 5000
	f.ask(remove)
	testkit.Eventually(t, 10*time.Second, "the missing topic is said", func() (bool, string) {
		_, _, _, why := f.All()[0].State(time.Now())
		return why != nil, fmt.Sprint(why)
	})
	if got := f.value(table, "b"); got != "1" {
		t.Errorf("without its topic the table says %s", got)
	}
	create, created := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewCreateTopicsRequestTopic()
	created.Topic, created.NumPartitions, created.ReplicationFactor = "t", 1, 1
	create.Topics, create.TimeoutMillis = append(create.Topics, created), 5000
	f.ask(create)
	f.client.PurgeTopicsFromClient("t")
	f.write("t", 0, "a", `{"id":"a","v":2}`)
	f.becomes(table, "a", "2")
	f.becomes(table, "b", "none")
}

// A table that cannot be read says why.
func TestUnread(t *testing.T) {
	f := newFixture(t, map[string]int{"other": 1})
	table := f.take(rowsOfT)
	testkit.Eventually(t, 10*time.Second, "the missing topic is said", func() (bool, string) {
		err := f.Awaited([]*features.Table{table})
		return err != nil && strings.Contains(err.Error(), "waiting for table m: fetch: offsets of t/0: there is no such topic or partition: check the name, or create the topic"), fmt.Sprint(err)
	})
	if got := f.value(table, "a"); got != "table m cannot answer: fetch: offsets of t/0: there is no such topic or partition: check the name, or create the topic" {
		t.Errorf("got %s", got)
	}
	if age := f.Age(table, time.Now()); age >= 0 {
		t.Errorf("a table that was never read is %s old", age)
	}
	f = newFixture(t, map[string]int{"t": 1})
	for i := range 4 {
		f.write("t", 0, fmt.Sprint(i), fmt.Sprintf(`{"id":"k%d","v":%d}`, i, i))
	}
	table = f.take("{topic: t, key: id, max_rows: 3, fields: {v: int}}")
	const large = "table m cannot answer: t/0 at offset 3: table m has more than 3 rows, its max_rows: the table is too large"
	f.becomes(table, "k0", large)
	f.whole(table) // it is not waited for
	table = f.take("{topic: t, key: id, max_rows: 4, fields: {v: int}}")
	f.becomes(table, "k0", "0")
	f.write("t", 0, "4", `{"id":"k4","v":4}`)
	f.becomes(table, "k0", strings.NewReplacer("offset 3", "offset 4", "than 3", "than 4").Replace(large))
}

// A table in a file is read again once the file has changed; what it had stays while that cannot be read.
func TestFile(t *testing.T) {
	f := newFixture(t, nil)
	name := filepath.Join(t.TempDir(), "rows.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	table := f.take("{file: " + name + ", key: id, fields: {v: int}}")
	testkit.Eventually(t, 10*time.Second, "the missing file is said", func() (bool, string) {
		err := f.Awaited([]*features.Table{table})
		return err != nil && err.Error() == "waiting for table m: "+name+": no such file or directory", fmt.Sprint(err)
	})
	write("id,v\na,1\nb,2\n")
	f.becomes(table, "a", "1")
	write("id,v\na,3\n")
	f.becomes(table, "a", "3")
	f.becomes(table, "b", "none")
	write("id,v\na,4\nb,many\n")
	testkit.Eventually(t, 10*time.Second, "the bad row is said", func() (bool, string) {
		_, _, _, why := f.All()[0].State(time.Now())
		return why != nil && strings.HasPrefix(why.Error(), name+":3: v: expected"), fmt.Sprint(why)
	})
	if got := f.value(table, "a"); got != "3" {
		t.Errorf("with a bad file the table says %s", got)
	}
	write("id,v\na,5\n")
	f.becomes(table, "a", "5")
}

// A table in an object is read when it is another one, and only then; a look is one request about it.
func TestObject(t *testing.T) {
	b := objectstore.New(t)
	f := newFixture(t, nil)
	name := b.URL("rows.csv.gz")
	table := defined.Registry(t, "tables: {m: {file: "+name+", key: id, max_rows: 2, fields: {v: int}}}\n").Tables[0]
	watched := newFile(f.Set.Take([]*features.Table{table})[0], f.Follower)
	var heads, gets int
	counted := func(w http.ResponseWriter, r *http.Request, store http.Handler) {
		if r.Method == http.MethodHead {
			heads++
		} else {
			gets++
		}
		store.ServeHTTP(w, r)
	}
	refuse := func(method string) objectstore.Handler {
		return func(w http.ResponseWriter, r *http.Request, store http.Handler) {
			if r.Method == method {
				objectstore.Refuse(w, http.StatusForbidden, "AccessDenied", "no")
				return
			}
			store.ServeHTTP(w, r)
		}
	}
	hang := func(w http.ResponseWriter, r *http.Request, store http.Handler) { <-r.Context().Done() }
	write := func(text string) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		b.Put(t, "rows.csv.gz", packed.Bytes())
	}
	const denied = ": access is denied (AccessDenied: %s): an object needs s3:GetObject, a folder or a pattern s3:ListBucket"
	for _, c := range []struct {
		what   string
		put    string // empty for no change
		before objectstore.Handler
		value  string // of a
		why    string
		heads  int
		gets   int
	}{
		{what: "before it is there", value: "table m cannot answer: " + name + ": there is no such object, or no such bucket",
			why: name + ": there is no such object, or no such bucket", heads: 1},
		{what: "the first object", put: "id,v\na,1\n", value: "1", heads: 3, gets: 1},
		{what: "the same one", value: "1", heads: 1},
		{what: "another one", put: "id,v\na,2\n", value: "2", heads: 3, gets: 1},
		{what: "a bad one", put: "id,v\na,many\n", value: "2", why: name + ":2: v: expected a 64-bit integer, found a string", heads: 3, gets: 1},
		{what: "the same bad one", value: "2", why: name + ":2: v: expected a 64-bit integer, found a string", heads: 1},
		{what: "one that cannot be read", put: "id,v\na,3\n", before: refuse(http.MethodGet), value: "2", why: name + fmt.Sprintf(denied, "no")},
		{what: "the same one, which can", value: "3", heads: 3, gets: 1},
		{what: "one that cannot be seen", before: refuse(http.MethodHead), value: "3", why: name + fmt.Sprintf(denied, "Access Denied.")},
		{what: "one that can again", value: "3", heads: 1},
		{what: "a store that hangs", before: hang, value: "3", why: name + ": the store does not answer in time: check its address, and what firewalls allow"},
		{what: "one that was too large", put: "id,v\na,1\nb,1\nc,1\n", value: "table m cannot answer: table m has more than 2 rows, its max_rows: the table is too large",
			why: "table m has more than 2 rows, its max_rows: the table is too large", heads: 3, gets: 1},
		{what: "one that is not", put: "id,v\na,5\n", value: "5", heads: 3, gets: 1},
	} {
		heads, gets = 0, 0
		if c.put != "" {
			write(c.put)
		}
		watched.patience = time.Minute
		if b.Before(counted); c.before != nil {
			watched.patience = 100 * time.Millisecond
			b.Before(c.before)
		}
		if wait := watched.look(t.Context()); wait != objectEach {
			t.Errorf("%s: the next look is after %s", c.what, wait)
		}
		_, _, _, why := watched.State(time.Now())
		if why == nil {
			why = errors.New("")
		}
		if got := f.value(table, "a"); got != c.value || why.Error() != c.why || heads != c.heads || gets != c.gets {
			t.Errorf("%s: got %s because of %q with %d HEAD and %d GET, want %s because of %q with %d and %d",
				c.what, got, why, heads, gets, c.value, c.why, c.heads, c.gets)
		}
	}
	f.Take([]*features.Table{table}) // and it is followed
	testkit.Eventually(t, 10*time.Second, "the object is read", func() (bool, string) {
		said := f.log.String()
		return strings.Count(said, "a table was read") == 5, said
	})
}

// A table follows a real broker: over aborted transactions, and over its death.
func TestKafka(t *testing.T) {
	broker := kafkatest.New(t, kafkatest.Options{})
	kafkatest.MakeTopic(t, broker, "t", 2)
	f := followerOf(t, broker.Addrs())
	table := f.take(rowsOfT)
	f.whole(table)
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.TransactionalID("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	write := func(id string, v int, end kgo.TransactionEndTry) {
		t.Helper()
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: "t", Key: []byte(id), Value: fmt.Appendf(nil, `{"id":%q,"v":%d}`, id, v)}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	write("a", 1, kgo.TryCommit)
	write("a", 2, kgo.TryAbort)
	write("b", 3, kgo.TryCommit)
	f.becomes(table, "a", "1")
	f.becomes(table, "b", "3")
	broker.Kill()
	testkit.Eventually(t, time.Minute, "the missing broker is said", func() (bool, string) {
		_, _, _, why := f.All()[0].State(time.Now())
		return why != nil, fmt.Sprint(why)
	})
	if got := f.value(table, "a"); got != "1" {
		t.Errorf("without its broker the table says %s", got)
	}
	age := f.Age(table, time.Now())
	broker.Start()
	write("a", 4, kgo.TryCommit)
	testkit.Eventually(t, time.Minute, "the new row", func() (bool, string) {
		got := f.value(table, "a")
		return got == "4", got
	})
	testkit.Eventually(t, time.Minute, "the table is up to date", func() (bool, string) {
		_, _, now, why := f.All()[0].State(time.Now())
		return why == nil && now < age, fmt.Sprint(now, age, why)
	})
}
