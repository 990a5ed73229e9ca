package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// replays is a topic of payments, some of which definitions cannot use, and its dead letters.
type replays struct {
	t        *testing.T
	servers  []string // settings of every command
	more     []string // further settings of commands
	producer *kgo.Client
	file     string // of the present definitions
}

func newReplays(t *testing.T) *replays {
	t.Helper()
	server, broker := redistest.New(t, redistest.Options{}), kafkatest.New(t, kafkatest.Options{})
	for _, topic := range []string{"payments", deadLetters} {
		made, err := broker.Client().CreateTopics(ctx, &kafka.CreateTopicsRequest{
			Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 2, ReplicationFactor: 1}},
		})
		if err != nil || made.Errors[topic] != nil {
			t.Fatal(err, made.Errors)
		}
	}
	producer, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	seal := filepath.Join(t.TempDir(), "seal") // which the namespaces share
	if err := os.WriteFile(seal, []byte("a secret of the namespaces"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &replays{t: t, servers: []string{"--kafka.brokers", broker.Addr(), "--redis.addresses", server.Addr(), "--store.seal.key_file", seal}, producer: producer}
}

// The features of several tests.
const (
	pays  = "user_pays: COUNT(lifetime, pay, user)"
	shops = "shop_pays: COUNT(lifetime, pay, shop)"
)

// define writes definitions with a type of amounts, or without them, and features.
func (r *replays) define(amount string, features ...string) (file string) {
	r.t.Helper()
	file = filepath.Join(r.t.TempDir(), "features.yaml")
	if amount != "" {
		amount = "      amount: " + amount
	}
	text := fmt.Sprintf(`
streams:
  pay:
    topic: payments
    format: json
    timestamp: {path: at, unit: ms}
    fields:
      user: string
      shop: string
      card: string
%s
features:
  %s
`, amount, strings.Join(features, "\n  "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return file
}

// write writes payments of the user u1 with amounts, in JSON.
func (r *replays) write(amounts ...string) {
	r.t.Helper()
	for _, amount := range amounts {
		r.writeAt(time.Now(), amount)
	}
}

// writeAt writes a payment of the present in a record of another time.
func (r *replays) writeAt(recorded time.Time, amount string) {
	r.t.Helper()
	value := fmt.Appendf(nil, `{"user": "u1", "shop": "s1", "card": "c1", "amount": %s, "at": %d}`, amount, time.Now().UnixMilli())
	rec := &kgo.Record{Topic: "payments", Key: []byte("u1"), Value: value, Timestamp: recorded}
	if err := r.producer.ProduceSync(ctx, rec).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

// run starts a process with definitions.
func (r *replays) run(file string, more ...string) *weir {
	r.t.Helper()
	r.file = file
	return startWeir(r.t, slices.Concat(r.servers, []string{"--kafka.session_timeout", "2s", "--kafka.heartbeat_interval", "300ms", "--api.timeout", "30s", "--features", file}, more)...)
}

// command runs a command to its end.
func (r *replays) command(args ...string) (out string, code int) {
	r.t.Helper()
	return runWeir(r.t, slices.Concat(args, r.servers, r.more)...)
}

// replay replays, and checks the output.
func (r *replays) replay(want string, more ...string) {
	r.t.Helper()
	if out, code := r.command(append([]string{"deadletters", "replay"}, more...)...); code != 0 || out != want {
		r.t.Errorf("replay %v: exit code %d, %s; want %s", more, code, out, want)
	}
}

// expect waits until everything is applied and filled, and compares values: "name?entity value".
func (r *replays) expect(w *weir, want ...string) {
	r.t.Helper()
	testkit.Eventually(r.t, time.Minute, "everything is applied and complete", func() (bool, string) {
		out, code := r.command("progress", "--max-lag", "0", "--features", r.file)
		for _, feature := range want {
			path, _, _ := strings.Cut(feature, " ")
			_, body := w.get("/v1/features/" + path)
			if out += body; !strings.Contains(body, `"status":"PRESENT"`) {
				return false, out
			}
		}
		return code == 0, out
	})
	for _, feature := range want {
		path, value, _ := strings.Cut(feature, " ")
		if _, body := w.get("/v1/features/" + path); !strings.Contains(body, `"value":`+value+",") {
			r.t.Errorf("%s, want %s: %s", path, value, body)
		}
	}
}

// Once definitions accept events that they rejected before, a replay applies them; events that are
// still rejected are set aside again.
func TestReplayedEventsCount(t *testing.T) {
	t.Parallel()
	r := newReplays(t)
	await := func(w *weir, want string, dead int) {
		t.Helper()
		testkit.Eventually(t, time.Minute, "the count", func() (bool, string) {
			_, body := w.get("/v1/features/user_pays?user=u1")
			n := int(w.metric("weir_dead_letters_total", ""))
			return n == dead && strings.Contains(body, `"value":`+want+","), fmt.Sprint(body, n)
		})
	}
	w := r.run(r.define("int", pays))
	r.write("1", `"2"`, "3", `"4"`, "{}")
	await(w, "2", 3)
	w.Stop()
	w = r.run(r.define("string", pays))
	r.replay("would replay 3 events: 3 wrong_type\n", "--dry-run")
	r.replay("replayed 3 events: 3 wrong_type\n", "--reason", "wrong_type")
	await(w, "4", 1)
	out, code := r.command("deadletters", "list")
	if code != 0 || !strings.Contains(out, "4 dead letters: 4 wrong_type, 3 of them replayed") {
		t.Errorf("deadletters list: exit code %d, output\n%s", code, out)
	}
	out, _ = r.command("deadletters", "list", "--json")
	if !strings.Contains(out, `"replays": 1`) {
		t.Errorf("a letter that was set aside again does not have 1 replay:\n%s", out)
	}
	// The value is still no string, and its dead letter differs from the replayed one.
	r.replay("replayed 1 event: 1 wrong_type\nskipped 3 dead letters replayed before\n")
	await(w, "4", 2)
	out, _ = r.command("deadletters", "list", "--json")
	if !strings.Contains(out, `"replays": 2`) {
		t.Errorf("a letter that was set aside a third time does not have 2 replays:\n%s", out)
	}
	w.Stop()
	// Now it can be used, and so can its copies: the one that comes is for what has missed all of them.
	w = r.run(r.define("", pays, shops))
	r.expect(w, "user_pays?user=u1 4", "shop_pays?shop=s1 5")
	r.replay("replayed 1 event: 1 wrong_type\nskipped 4 dead letters replayed before\n")
	r.expect(w, "user_pays?user=u1 5", "shop_pays?shop=s1 5")
}

// Each replayed event counts once in every feature: in those that set the original aside, in those whose backfill could not
// use it either, in those that start over because of the correction, in those that are new after the replay, in another
// namespace, and in state that is refilled.
func TestReplayBesideBackfills(t *testing.T) {
	t.Parallel()
	r := newReplays(t)
	const sums, cards = "user_paid: SUM(lifetime, pay, amount, user)", "card_pays: COUNT(lifetime, pay, card)"
	w := r.run(r.define("int", pays, sums))
	r.write("1", `"2"`, "3", `"4"`)
	r.expect(w, "user_pays?user=u1 2", "user_paid?user=u1 4")
	w.Stop()
	w = r.run(r.define("int", pays, sums, shops))
	r.expect(w, "shop_pays?shop=s1 2") // its backfill has read the originals in vain
	w.Stop()
	w = r.run(r.define("decimal", pays, sums, shops))
	r.expect(w, "user_pays?user=u1 2", "shop_pays?shop=s1 2", "user_paid?user=u1 10") // the sum has started over
	r.replay("replayed 2 events: 2 wrong_type\n")
	r.expect(w, "user_pays?user=u1 4", "shop_pays?shop=s1 4", "user_paid?user=u1 10")
	w.Stop()
	w = r.run(r.define("decimal", pays, sums, shops, cards))
	r.expect(w, "user_pays?user=u1 4", "shop_pays?shop=s1 4", "user_paid?user=u1 10", "card_pays?card=c1 4")

	out, code := r.command("state", "drop", "user=u1", "--all", "--refill", "--features", r.file)
	if code != 0 {
		t.Errorf("a refill: exit code %d, %s", code, out)
	}
	r.expect(w, "user_pays?user=u1 4", "user_paid?user=u1 10")
	w.Stop()

	second := []string{"--namespace", "second", "--kafka.group", "second", "--kafka.start", "earliest"}
	w = r.run(r.file, second...)
	r.more = second[:2]
	r.expect(w, "user_pays?user=u1 4", "shop_pays?shop=s1 4", "user_paid?user=u1 10", "card_pays?card=c1 4")
	r.replay("replayed 0 events\nskipped 2 dead letters of another namespace, or not sealed by this one: replay them with the settings of theirs\n")
}

// An event that comes from the future of its record can be used only with another timestamp. So a backfill counts its
// copy, as it never counts the original.
func TestReplayWithThePresentTime(t *testing.T) {
	t.Parallel()
	r := newReplays(t)
	w := r.run(r.define("int", pays))
	r.write("1")
	r.writeAt(time.Now().Add(-time.Hour), "2")
	r.expect(w, "user_pays?user=u1 1")
	r.replay("replayed 1 event: 1 future_timestamp\n", "--stamp-now")
	r.expect(w, "user_pays?user=u1 2")
	w.Stop()
	w = r.run(r.define("int", pays, shops))
	r.expect(w, "user_pays?user=u1 2", "shop_pays?shop=s1 2")
}
