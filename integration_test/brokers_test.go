package integration_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// payments is a topic of one partition, in a namespace of its own, and what answers about it
// must be.
type payments struct {
	t        *testing.T
	topic    string
	group    string
	settings []string
	written  int64
	want     map[string]*total // by user
}

// total is the number of a user's payments and their sum.
type total struct{ count, sum int64 }

// newPayments makes definitions for a topic that is there.
func newPayments(t *testing.T, topic, redis string, brokers ...string) *payments {
	t.Helper()
	definitions := filepath.Join(t.TempDir(), "payments.yaml")
	text := fmt.Sprintf(`
streams:
  payment:
    topic: %s
    timestamp: {path: timestamp, unit: ms}
    fields: {user_id: string, amount: int}
features:
  count: COUNT(1d, payment, user_id)
  sum:   SUM(1d, payment, amount, user_id)
`, topic)
	if err := os.WriteFile(definitions, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	namespace := testkit.Namespace(t)
	return &payments{t: t, topic: topic, group: namespace, want: map[string]*total{}, settings: []string{
		"--namespace", namespace, "--features", definitions, "--redis.addresses", redis,
		"--kafka.brokers", strings.Join(brokers, ","), "--kafka.group", namespace, "--kafka.dead_letter_topic", topic + "-dead",
		"--kafka.create_topics=true", "--kafka.topic_replication", "1",
		// Longer than any fault: a rebalance would look at the log anew.
		"--kafka.session_timeout", "2m", "--processor.commit_interval", "100ms",
	}}
}

// start starts a process that applies the topic and answers; more settings override the others.
func (p *payments) start(more ...string) *weir {
	p.t.Helper()
	return startWeir(p.t, slices.Concat([]string{"--roles", "processor,api"}, p.settings, more)...)
}

// weir runs a command.
func (p *payments) weir(args ...string) (out string, code int) {
	p.t.Helper()
	return runWeir(p.t, slices.Concat(args, p.settings)...)
}

// next are n more payments, which count from now on.
func (p *payments) next(n int) (records []*kgo.Record) {
	now := time.Now().UnixMilli()
	for range n {
		p.written++
		user := "u" + strconv.FormatInt(p.written%7, 10)
		if p.want[user] == nil {
			p.want[user] = &total{}
		}
		p.want[user].count++
		p.want[user].sum += p.written
		records = append(records, &kgo.Record{
			Topic: p.topic, Timestamp: time.UnixMilli(now),
			Value: fmt.Appendf(nil, `{"timestamp":%d,"user_id":%q,"amount":%d}`, now, user, p.written),
		})
	}
	return records
}

// write writes n more payments by way of some brokers.
func (p *payments) write(n int, brokers ...string) {
	p.t.Helper()
	p.send(kafkaClient(p.t, brokers), n)
}

func (p *payments) send(client *kgo.Client, n int) {
	p.t.Helper()
	if err := client.ProduceSync(p.t.Context(), p.next(n)...).FirstErr(); err != nil {
		p.t.Fatal(err)
	}
}

// kafkaClient is one that sends each batch until the leader has it, whoever that is.
func kafkaClient(t *testing.T, brokers []string, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(more, kgo.SeedBrokers(brokers...), kgo.AlwaysRetryEOF(), kgo.UnknownTopicRetries(-1),
		kgo.MetadataMinAge(100*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// await waits until the process answers what it must.
func (p *payments) await(w *weir) {
	p.t.Helper()
	testkit.Eventually(p.t, 2*time.Minute, "all payments are in the answers", func() (bool, string) {
		select {
		case <-w.Done():
			p.t.Fatal("the process has ended")
		default:
		}
		got, err := p.totals(w)
		if err != nil {
			return false, err.Error()
		}
		return maps.Equal(got, p.totalsWanted()), fmt.Sprintf("%v, want %v; the process says:\n%s", got, p.totalsWanted(), w.Log())
	})
}

// check wants the answers as they must be, now.
func (p *payments) check(w *weir) {
	p.t.Helper()
	got, err := p.totals(w)
	if err != nil || !maps.Equal(got, p.totalsWanted()) {
		p.t.Errorf("%v, %v; want %v", got, err, p.totalsWanted())
	}
}

func (p *payments) totalsWanted() map[string]total {
	want := map[string]total{}
	for user, t := range p.want {
		want[user] = *t
	}
	return want
}

func (p *payments) totals(w *weir) (map[string]total, error) {
	users := slices.Sorted(maps.Keys(p.want))
	answers, err := p.ask(w)
	if err != nil {
		return nil, err
	}
	got := map[string]total{}
	for i, user := range users {
		var t total
		t.count, _ = strconv.ParseInt(string(answers[i]["count"].Value), 10, 64)
		t.sum, _ = strconv.ParseInt(string(answers[i]["sum"].Value), 10, 64) // null before the first
		got[user] = t
	}
	return got, nil
}

func (p *payments) ask(w *weir) ([]map[string]answer, error) {
	q := question{Features: []string{"count", "sum"}, At: time.Now().UnixMilli()}
	for _, user := range slices.Sorted(maps.Keys(p.want)) {
		q.Entities = append(q.Entities, json.RawMessage(`{"user_id":"`+user+`"}`))
	}
	return w.ask(q)
}

// gap is since when answers say that they are complete, 0 if they say nothing.
func (p *payments) gap(w *weir) int64 {
	p.t.Helper()
	answers, err := p.ask(w)
	if err != nil {
		p.t.Fatal(err)
	}
	if since := answers[0]["count"].CompleteSince; since != nil {
		return *since
	}
	return 0
}

// awaitGap waits until answers say that something before a moment or later is missing: they
// learn of a gap a second late.
func (p *payments) awaitGap(w *weir, began int64) {
	p.t.Helper()
	testkit.Eventually(p.t, 30*time.Second, "the gap is in the answers", func() (bool, string) {
		since := p.gap(w)
		return since >= began, fmt.Sprintf("complete since %d, want %d or later", since, began)
	})
}

// awaitStopped waits until the partition is stopped for a reason, with a message of this form,
// while the process lives and answers what it did.
func (p *payments) awaitStopped(w *weir, reason, message string) {
	p.t.Helper()
	pattern := regexp.MustCompile(message)
	testkit.Eventually(p.t, 2*time.Minute, "/readyz says "+message, func() (bool, string) {
		status, body := w.get("/readyz")
		var reply struct {
			Checks []struct {
				Error string
				Ready bool
			}
		}
		if status != http.StatusServiceUnavailable || json.Unmarshal([]byte(body), &reply) != nil {
			return false, fmt.Sprint(status, body, w.Log())
		}
		for _, c := range reply.Checks {
			if !c.Ready && pattern.MatchString(c.Error) {
				return true, ""
			}
		}
		return false, body
	})
	if n := w.metric("weir_stopped_partitions", `reason="`+reason+`"`); n != 1 {
		p.t.Errorf("%v partitions are stopped by %s, want 1", n, reason)
	}
	if status, _ := w.get("/healthz"); status != http.StatusOK {
		p.t.Errorf("/healthz answers %d: the process would be killed", status)
	}
	p.check(w)
}

// The identity of the log, on real brokers that elect, lose and replace it.
func TestLogs(t *testing.T) {
	cluster := kafkatest.NewCluster(t)
	redis := redistest.New(t, redistest.Options{})
	on := func(test func(*testing.T, *kafkatest.Cluster, string)) func(*testing.T) {
		return func(t *testing.T) { test(t, cluster, redis.Addr()) }
	}
	t.Run("isolation changed then committed", on(func(t *testing.T, c *kafkatest.Cluster, r string) { isolationChanged(t, c, r, kgo.TryCommit) }))
	t.Run("isolation changed then aborted", on(func(t *testing.T, c *kafkatest.Cluster, r string) { isolationChanged(t, c, r, kgo.TryAbort) }))
	t.Run("topic made anew", on(topicMadeAnew))
	t.Run("stale leader", on(staleLeader))
	t.Run("leader cut off", on(leaderCutOff))
	t.Run("leader killed", on(leaderKilled))
	t.Run("unclean election", on(uncleanElection))
}

// What a processor has applied beyond the last stable offset belongs to the same log: after a
// change to read_committed it waits for the transaction, and goes on behind what it has.
func isolationChanged(t *testing.T, cluster *kafkatest.Cluster, redis string, end kgo.TransactionEndTry) {
	topic := cluster.CreateTopic(t, 1)
	p := newPayments(t, topic, redis, cluster.Addrs()...)
	w := p.start("--kafka.isolation", "read_uncommitted")
	transactional := kafkaClient(t, cluster.Addrs(), kgo.TransactionalID(testkit.Namespace(t)), kgo.TransactionTimeout(5*time.Minute))
	if err := transactional.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	p.write(20, cluster.Addrs()...)
	p.send(transactional, 30)
	p.write(10, cluster.Addrs()...)
	p.await(w)
	w.Stop()

	w = p.start("--kafka.isolation", "read_committed", "--kafka.on_data_loss", "continue")
	p.awaitStopped(w, "open_transaction", `waiting for open transactions to end: applied up to offset 60, the last stable offset is 20 and the log ends at 60`)
	p.write(10, cluster.Addrs()...)
	if err := transactional.EndTransaction(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	p.await(w)
	w.awaitReady()
	p.notLost(w)
}

// notLost wants nothing taken for lost, and no gap.
func (p *payments) notLost(w *weir) {
	p.t.Helper()
	p.check(w)
	for _, name := range []string{"weir_vanished_records_total", "weir_lost_records_total", "weir_rewinds_total", "weir_stopped_partitions"} {
		if n := w.metric(name, ""); n != 0 {
			p.t.Errorf("%s is %v, want 0", name, n)
		}
	}
	if since := p.gap(w); since != 0 {
		p.t.Errorf("answers are complete since %d only", since)
	}
}

// A topic that is deleted and made anew is another log, however long: nothing of it is applied
// until an operator says so.
func topicMadeAnew(t *testing.T, cluster *kafkatest.Cluster, redis string) {
	topic := cluster.CreateTopic(t, 1)
	p := newPayments(t, topic, redis, cluster.Addrs()...)
	w := p.start("--kafka.on_data_loss", "continue")
	p.write(50, cluster.Addrs()...)
	p.await(w)

	cluster.DeleteTopic(t, topic)
	cluster.MakeTopic(t, topic, nil, 1)
	old := p.totalsWanted()
	p.write(80, cluster.Addrs()...)
	after := p.want
	p.want = pointers(old)
	p.awaitStopped(w, "other_log", `^`+topic+`/0: the topic was deleted and made anew: up to offset 50 was applied of topic ID \S+ in cluster \S+, `+
		`and now there are offsets 0 to 79 of topic ID \S+ in cluster \S+; nothing of it is applied until you choose: `+
		`to keep the state and apply the new log from its start, run: weir progress set `+topic+` --to start --yes; `+
		`to begin anew from the new log alone, set another namespace$`)
	p.carryOn(w, after)
}

// carryOn has the processor go on with another log, as an operator does.
func (p *payments) carryOn(w *weir, want map[string]*total) {
	p.t.Helper()
	before := time.Now().UnixMilli()
	shows := `^` + p.topic + `/0: to offset 0 of the log, which holds 0 to 79
  ` + strconv.Itoa(shards) + ` shards have applied another log: topic ID \S+ in cluster \S+; the state is kept, and what comes is applied of topic ID \S+ in cluster \S+
  records that both logs hold will count twice
`
	out, code := p.weir("progress", "set", p.topic, "--to", "start")
	if code != 0 || !regexp.MustCompile(shows+"nothing was changed; with --yes it is\n$").MatchString(out) {
		p.t.Fatalf("exit code %d: %s", code, out)
	}
	p.check(w)
	out, code = p.weir("progress", "set", p.topic, "--to", "start", "--yes")
	if code != 0 || !regexp.MustCompile(shows+"done\n$").MatchString(out) {
		p.t.Fatalf("exit code %d: %s", code, out)
	}
	p.want = want
	p.await(w)
	w.awaitReady()
	p.awaitGap(w, before) // the old log may have held more
	out, code = p.weir("progress", "set", p.topic+"/0", "--to", "start", "--yes")
	if code != 0 || !strings.HasSuffix(out, " are there or further, and will stay\nnothing changes\n") {
		p.t.Errorf("exit code %d: %s", code, out)
	}
}

func pointers(totals map[string]total) map[string]*total {
	all := map[string]*total{}
	for user, t := range totals {
		all[user] = &t
	}
	return all
}

// A broker that is cut off names itself the leader, and has not what was applied since. That
// is no truncation.
func staleLeader(t *testing.T, cluster *kafkatest.Cluster, redis string) {
	topic := cluster.CreateTopic(t, 2, 1)
	p := newPayments(t, topic, redis, cluster.Addrs()...)
	p.write(50, cluster.Addrs()...)
	cluster.Split()
	defer cluster.Unite()
	cluster.AwaitLeader(t, topic, 1, 1)
	w := p.start("--kafka.brokers", cluster.Node(1).Addr())
	p.write(50, cluster.Node(1).Addr())
	p.await(w)
	w.Stop()

	w = p.start("--kafka.brokers", cluster.Node(2).Addr(), "--kafka.on_data_loss", "continue")
	p.awaitStopped(w, "stale_leader", `waiting for brokers that know the leader: they name broker 2 with leader epoch 0, and records of epoch 1 are applied`)
	cluster.Unite()
	cluster.AwaitLeader(t, topic, 1, 1, 2)
	p.write(20, cluster.Addrs()...)
	p.await(w)
	w.awaitReady()
	p.notLost(w)
}

// A leader that is cut off while a processor reads from it does not hear that another one was
// elected, and says that nothing new has come. Other brokers know better.
func leaderCutOff(t *testing.T, cluster *kafkatest.Cluster, redis string) {
	topic := cluster.CreateTopic(t, 2, 1)
	p := newPayments(t, topic, redis, cluster.Addrs()...)
	// Only the leader tells it where leaders are: others would show that it is cut off by their metadata.
	w := p.start("--kafka.brokers", cluster.Node(2).Addr())
	p.write(50, cluster.Addrs()...)
	p.await(w)
	cluster.Split()
	defer cluster.Unite()
	cluster.AwaitLeader(t, topic, 1, 1)
	p.write(50, cluster.Node(1).Addr())
	began := time.Now()
	p.await(w)
	t.Logf("noticed after %v at the latest", time.Since(began).Round(time.Millisecond))
	if log := w.Log(); !strings.Contains(log, "a broker names a younger leader") {
		t.Errorf("the log does not tell of the younger leader:\n%s", log)
	}
	cluster.Unite()
	cluster.AwaitLeader(t, topic, 1, 1, 2)
	p.write(20, cluster.Addrs()...)
	p.await(w)
	w.awaitReady()
	p.notLost(w)
}

// A leader that dies leaves its log to another that has all of it: nothing stops.
func leaderKilled(t *testing.T, cluster *kafkatest.Cluster, redis string) {
	topic := cluster.CreateTopic(t, 2, 3)
	p := newPayments(t, topic, redis, cluster.Addrs()...)
	w := p.start()
	p.write(50, cluster.Addrs()...)
	p.await(w)
	cluster.Node(2).Kill()
	defer cluster.Node(2).Start()
	cluster.AwaitLeader(t, topic, 3, 3)
	p.write(50, cluster.Addrs()...)
	p.await(w)
	w.awaitReady()
	p.notLost(w)
	if log := w.Log(); strings.Contains(log, "carrying the partition fails") {
		t.Errorf("the partition stopped:\n%s", log)
	}
	w.Stop()
	w = p.start() // looks at the log anew, which has two epochs
	p.write(10, cluster.Addrs()...)
	p.await(w)
	p.notLost(w)
}

// An election of a leader that lacks what was applied, behind the back of a processor that looks
// again when the log has grown past its progress. It goes on where the log diverges.
func uncleanElection(t *testing.T, cluster *kafkatest.Cluster, redis string) {
	const both, vanish, more = 60, 40, 90
	topic := cluster.CreateTopic(t, 2, 3)
	p := newPayments(t, topic, redis, cluster.Addrs()...)
	w := p.start()
	p.write(both, cluster.Addrs()...)
	p.await(w)
	cluster.Node(3).Kill()
	cluster.AwaitLeader(t, topic, 2, 2)
	p.write(vanish, cluster.Addrs()...)
	p.await(w)
	before := p.gap(w)

	w.Pause()
	cluster.Node(2).Kill()
	cluster.Node(3).Start()
	cluster.ElectUnclean(t, topic)
	cluster.AwaitLeader(t, topic, 3, 3)
	p.write(more, cluster.Addrs()...)
	began := time.Now().UnixMilli()
	w.Resume()
	p.await(w)
	w.awaitReady()
	if n := w.metric("weir_vanished_records_total", `topic="`+topic+`"`); n != vanish {
		t.Errorf("%v records have vanished, want %d", n, vanish)
	}
	if n := w.metric("weir_lost_records_total", "") + w.metric("weir_rewinds_total", ""); n != 0 {
		t.Errorf("%v records lost and rewinds, want none: all that the log has was applied", n)
	}
	if before != 0 {
		t.Errorf("answers were complete since %d only, before anything had vanished", before)
	}
	p.awaitGap(w, began)
	said := fmt.Sprintf("topic=%s partition=0 vanished=%d offset=%d applied=%d", topic, vanish, both, both+vanish)
	if log := w.Log(); !strings.Contains(log, said) || !strings.Contains(log, "the log was truncated") {
		t.Errorf("the log does not tell of the truncation, %s:\n%s", said, log)
	}
	cluster.Node(2).Start()
}

// Another cluster at the address, as after a failover to another site, with a topic of the same
// name: nothing of it is applied until an operator says so.
func TestAnotherClusterAtTheAddress(t *testing.T) {
	server := redistest.New(t, redistest.Options{})
	broker := kafkatest.New(t, kafkatest.Options{})
	topic := kafkatest.CreateTopic(t, broker, 1)
	p := newPayments(t, topic, server.Addr(), broker.Addr())
	w := p.start("--kafka.on_data_loss", "continue")
	p.write(50, broker.Addr())
	p.await(w)

	broker.Replace()
	kafkatest.MakeTopic(t, broker, topic, 1)
	old := p.totalsWanted()
	p.write(80, broker.Addr())
	after := p.want
	p.want = pointers(old)
	p.awaitStopped(w, "other_log", `^`+topic+`/0: this is another cluster: up to offset 50 was applied of topic ID \S+ in cluster (\S+), `+
		`and now there are offsets 0 to 79 of topic ID \S+ in cluster \S+; nothing of it is applied until you choose: `)
	p.carryOn(w, after)
}
