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
)

// payments is a topic of one partition with a namespace of its own, and the expected answers.
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

// newPayments writes definitions for an existing topic.
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
		// The timeout is longer than any fault: a rebalance would read the state of the log again.
		"--kafka.session_timeout", "10m", "--processor.commit_interval", "100ms", "--api.timeout", "30s",
	}}
}

// start starts a process that applies the topic and answers; settings in more override the others.
func (p *payments) start(more ...string) *weir {
	p.t.Helper()
	return startWeir(p.t, slices.Concat([]string{"--roles", "processor,api"}, p.settings, more)...)
}

// weir runs a command.
func (p *payments) weir(args ...string) (out string, code int) {
	p.t.Helper()
	return runWeir(p.t, slices.Concat(args, p.settings)...)
}

// next returns n more payments and adds them to the expected answers.
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

// write writes n more payments through the given brokers.
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

// kafkaClient returns a client that repeats each batch until the current leader has it.
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

// await waits until the process gives the expected answers.
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

// check fails the test unless the process gives the expected answers now.
func (p *payments) check(w *weir) {
	p.t.Helper()
	got, err := p.totals(w)
	if err != nil || !maps.Equal(got, p.totalsWanted()) {
		p.t.Errorf("totals %v, error %v; want %v", got, err, p.totalsWanted())
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
		t.sum, _ = strconv.ParseInt(string(answers[i]["sum"].Value), 10, 64) // null before the first payment
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

// gap returns the complete_since of the answers, 0 if they have none.
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

// awaitGap waits until answers report that events are missing at or after a moment; they learn of a
// gap a second late.
func (p *payments) awaitGap(w *weir, began int64) {
	p.t.Helper()
	testkit.Eventually(p.t, time.Minute, "the gap is in the answers", func() (bool, string) {
		since := p.gap(w)
		return since >= began, fmt.Sprintf("complete since %d, want %d or later", since, began)
	})
}

// awaitStopped waits until the partition is stopped for a reason, with a message that matches the
// pattern. The process must stay alive and answer as before.
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
		p.t.Errorf("%v partitions have stopped because of %s, want 1", n, reason)
	}
	if status, _ := w.get("/healthz"); status != http.StatusOK {
		p.t.Errorf("/healthz answers %d, want 200: the process would be killed", status)
	}
	p.check(w)
}
