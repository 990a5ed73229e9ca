package integration_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// These trials test the identity of the log on real brokers that elect, lose and replace it.
func TestIdentityOfLogs(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.NewCluster(t)
	redis := redistest.New(t, redistest.Options{})
	on := func(test func(*testing.T, *kafkatest.Cluster, string)) func(*testing.T) {
		return func(t *testing.T) { test(t, cluster, redis.Addr()) }
	}
	t.Run("isolation changed then committed", on(func(t *testing.T, c *kafkatest.Cluster, r string) { isolationChanged(t, c, r, kgo.TryCommit) }))
	t.Run("isolation changed then aborted", on(func(t *testing.T, c *kafkatest.Cluster, r string) { isolationChanged(t, c, r, kgo.TryAbort) }))
	t.Run("topic recreated", on(topicRecreated))
	t.Run("stale leader", on(staleLeader))
	t.Run("leader cut off", on(leaderCutOff))
	t.Run("leader killed", on(leaderKilled))
	t.Run("unclean election", on(uncleanElection))
}

// A processor may have applied records beyond the last stable offset. After a change to
// read_committed it waits for the transaction to end, and resumes after the last offset it applied.
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

// notLost checks that no records are reported lost and that answers show no gap.
func (p *payments) notLost(w *weir) {
	p.t.Helper()
	p.check(w)
	// A partition that could not be fetched is reported until the worker looks again, each commit interval.
	testkit.Eventually(p.t, time.Minute, "no partition is stopped", func() (bool, string) {
		n := w.metric("weir_stopped_partitions", "")
		return n == 0, fmt.Sprintf("weir_stopped_partitions is %v", n)
	})
	for _, name := range []string{"weir_vanished_records_total", "weir_lost_records_total", "weir_rewinds_total"} {
		if n := w.metric(name, ""); n != 0 {
			p.t.Errorf("%s is %v, want 0", name, n)
		}
	}
	if since := p.gap(w); since != 0 {
		p.t.Errorf("answers are complete only since %d", since)
	}
}

// A topic that is deleted and recreated is another log, whatever its length: Weir applies nothing
// from it until an operator confirms it.
func topicRecreated(t *testing.T, cluster *kafkatest.Cluster, redis string) {
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
	p.awaitStopped(w, "other_log", `^`+topic+`/0: the topic was deleted and recreated: up to offset 50 was applied of topic ID \S+ in cluster \S+, `+
		`and now there are offsets 0 to 79 of topic ID \S+ in cluster \S+; nothing of it is applied until you choose: `+
		`to keep the state and apply the new log from its start, run: weir progress set `+topic+` --to start --yes; `+
		`to start over from the new log alone, set another namespace$`)
	p.carryOn(w, after)
}

// carryOn makes the processor continue with the other log, as an operator does.
func (p *payments) carryOn(w *weir, want map[string]*total) {
	p.t.Helper()
	before := time.Now().UnixMilli()
	shows := `^` + p.topic + `/0: to offset 0 of the log, which holds 0 to 79
  ` + strconv.Itoa(shards) + ` shards have applied another log: topic ID \S+ in cluster \S+; the state is kept, and further records are applied from topic ID \S+ in cluster \S+
  records that both logs hold will count twice
`
	out, code := p.weir("progress", "set", p.topic, "--to", "start")
	if code != 0 || !regexp.MustCompile(shows+"nothing was changed: repeat with --yes to do it\n$").MatchString(out) {
		p.t.Fatalf("weir progress set without --yes: unexpected exit code %d or output: %s", code, out)
	}
	p.check(w)
	out, code = p.weir("progress", "set", p.topic, "--to", "start", "--yes")
	if code != 0 || !regexp.MustCompile(shows+"done\n$").MatchString(out) {
		p.t.Fatalf("weir progress set --yes: unexpected exit code %d or output: %s", code, out)
	}
	p.want = want
	p.await(w)
	w.awaitReady()
	p.awaitGap(w, before) // the old log may have held more records
	out, code = p.weir("progress", "set", p.topic+"/0", "--to", "start", "--yes")
	if code != 0 || !strings.HasSuffix(out, " are there or further, and will stay\nnothing changes\n") {
		p.t.Errorf("a repeated weir progress set: unexpected exit code %d or output: %s", code, out)
	}
}

func pointers(totals map[string]total) map[string]*total {
	all := map[string]*total{}
	for user, t := range totals {
		all[user] = &t
	}
	return all
}

// An isolated broker still claims to be the leader, and lacks the records applied since. That is
// not a truncation.
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
	p.awaitStopped(w, "stale_leader", `waiting for brokers that know the leader: they name broker 2 with leader epoch 0, and it was applied under epoch 1`)
	cluster.Unite()
	cluster.AwaitLeader(t, topic, 1, 1, 2)
	p.write(20, cluster.Addrs()...)
	p.await(w)
	w.awaitReady()
	p.notLost(w)
}

// A leader that is isolated while a processor reads from it does not notice the election of another leader, and reports
// no new records. Other brokers report the new leader.
func leaderCutOff(t *testing.T, cluster *kafkatest.Cluster, redis string) {
	topic := cluster.CreateTopic(t, 2, 1)
	p := newPayments(t, topic, redis, cluster.Addrs()...)
	// The processor gets metadata only from this leader: another broker's would show that it is
	// isolated.
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
	if log := w.Log(); !strings.Contains(log, "a broker names a newer leader") {
		t.Errorf("the log does not report the newer leader:\n%s", log)
	}
	cluster.Unite()
	cluster.AwaitLeader(t, topic, 1, 1, 2)
	p.write(20, cluster.Addrs()...)
	p.await(w)
	w.awaitReady()
	p.notLost(w)
}

// When a leader dies, a replica with the whole log takes over, and processing continues.
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
	if log := w.Log(); strings.Contains(log, "processing the partition fails") {
		t.Errorf("the partition stopped:\n%s", log)
	}
	w.Stop()
	w = p.start() // reads the state of the log again, which now has two epochs
	p.write(10, cluster.Addrs()...)
	p.await(w)
	p.notLost(w)
}

// The new leader lacks records that were applied. The processor notices only when the log has grown
// past its progress, and resumes at the offset where the log diverges.
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
		t.Errorf("%v records lost and rewinds, want none: all records of the log were applied", n)
	}
	if before != 0 {
		t.Errorf("before anything had vanished, answers were complete only since %d", before)
	}
	p.awaitGap(w, began)
	said := fmt.Sprintf("topic=%s partition=0 vanished=%d offset=%d applied=%d", topic, vanish, both, both+vanish)
	if log := w.Log(); !strings.Contains(log, said) || !strings.Contains(log, "the log was truncated") {
		t.Errorf("the log does not report the truncation with %s:\n%s", said, log)
	}
	cluster.Node(2).Start()
}

// After a failover to another site, another cluster with a topic of the same name answers at the
// same address: Weir applies nothing from it until an operator confirms it.
func TestAnotherClusterAtTheSameAddress(t *testing.T) {
	t.Parallel()
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
