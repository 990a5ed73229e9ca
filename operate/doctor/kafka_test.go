package doctor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
)

// load loads definitions over a topic.
func load(t *testing.T, topic string) *features.Registry {
	t.Helper()
	path := filepath.Join(t.TempDir(), "features.yaml")
	text := strings.ReplaceAll(`
streams:
  pay:
    topic: TOPIC
    format: json
    timestamp: {path: at, unit: ms}
    fields: {user: string, ok: bool}
features:
  ever: COUNT(lifetime, pay, user)
  days: COUNT(2d, pay, user)
  late: COUNT(2d, pay, user, delay=1d)
  kept: COUNT(1h, pay, user, keep=2d)
`, "TOPIC", topic)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, f := Definitions([]string{path})
	if diff := cmp.Diff([]string{"OK 4 features of 1 stream"}, lines(f, "definitions")); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	return registry
}

const oneCopy = "WARN has partitions with one copy: a broker that is lost takes events with it: give it a replication factor of 3"

func TestTopics(t *testing.T) {
	broker := kafkatest.Shared(t)
	topic := kafkatest.CreateTopic(t, broker, 2)
	dead := kafkatest.CreateTopic(t, broker, 1)
	look := Topics{Registry: load(t, topic), DeadLetters: dead, Copies: 24 * time.Hour, MaxRecordBytes: 1 << 20}
	client := broker.Client()
	set := func(name string, pairs ...string) {
		t.Helper()
		request := &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: name}}}
		for i := 0; i < len(pairs); i += 2 {
			request.Resources[0].Configs = append(request.Resources[0].Configs, kafka.AlterConfigRequestConfig{Name: pairs[i], Value: pairs[i+1]})
		}
		reply, err := client.AlterConfigs(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range reply.Errors {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	plain := []string{"OK 2 partitions", oneCopy, "OK cleanup.policy is delete", "OK keeps events forever", "OK message.timestamp.type is CreateTime"}
	with := func(place int, line string) []string {
		changed := append([]string{}, plain...)
		changed[place] = line
		return changed
	}
	for name, c := range map[string]struct {
		settings []string
		want     []string
	}{
		"long":              {[]string{"retention.ms", "349200000"}, with(3, "OK keeps events for 97h0m0s")},
		"forever":           {[]string{"retention.ms", "-1"}, with(3, "OK keeps events forever")},
		"as long as can be": {[]string{"retention.ms", "9223372036854775807"}, with(3, "OK keeps events forever")},
		"short for a window": {[]string{"retention.ms", "259200000"}, with(3, "WARN keeps events for 72h0m0s: longer windows, such as late (73h0m0s), "+
			"cannot be recomputed from the log: set retention.ms=349200000")},
		"short for a copy": {[]string{"retention.ms", "3600000"}, with(3, "FAIL keeps events for 1h0m0s: a copy of Redis that is 24h0m0s old cannot be brought up to date: "+
			"set retention.ms=349200000, or restore no copies that are so old (--copies)")},
		"by bytes": {[]string{"retention.ms", "-1", "retention.bytes", "1000"}, []string{plain[0], plain[1], plain[2],
			"WARN retention.bytes is 1000 for each partition: a burst shortens how far the topic goes back: set retention.bytes=-1, and retention.ms by time",
			"OK keeps events forever", plain[4]}},
		"compacted": {[]string{"retention.ms", "-1", "cleanup.policy", "compact"}, []string{plain[0], plain[1],
			"FAIL cleanup.policy is compact: of the records of one key only the last one is kept: set cleanup.policy=delete", "OK keeps events forever", plain[4]}},
		"broker's times": {[]string{"retention.ms", "-1", "message.timestamp.type", "LogAppendTime"}, []string{plain[0], plain[1], plain[2], "OK keeps events forever",
			"WARN message.timestamp.type is LogAppendTime: history that is written into it counts as late: set message.timestamp.type=CreateTime, unless producers' clocks cannot be trusted"}},
		"large": {[]string{"retention.ms", "-1", "max.message.bytes", "2000000"}, []string{plain[0], plain[1], plain[2], "OK keeps events forever", plain[4],
			"WARN max.message.bytes is 2000000: values of more than 1048576 become dead letters: raise kafka.max_record_bytes to it"}},
	} {
		set(topic, c.settings...)
		testkit.Eventually(t, time.Minute, name, func() (bool, string) { // brokers apply settings after a while
			diff := cmp.Diff(c.want, lines(Kafka(t.Context(), client, look), "topic "+topic))
			return diff == "", diff
		})
	}

	set(topic)
	set(dead, "cleanup.policy", "compact,delete")
	testkit.Eventually(t, time.Minute, "a compacted topic of dead letters", func() (bool, string) {
		diff := cmp.Diff([]string{"OK 1 partition", oneCopy,
			"FAIL cleanup.policy is compact,delete: of the records of one key only the last one is kept: set cleanup.policy=delete"},
			lines(Kafka(t.Context(), client, look), "topic "+dead))
		return diff == "", diff
	})
	set(topic, "max.message.bytes", "2000000")
	set(dead, "max.message.bytes", "1900000")
	testkit.Eventually(t, time.Minute, "a topic of dead letters with less room", func() (bool, string) {
		diff := cmp.Diff([]string{"OK 1 partition", oneCopy, "OK cleanup.policy is delete",
			"WARN max.message.bytes is 1900000, and that of topic " + topic + " is 2000000: the letter of a larger record that cannot be used is cut, and cannot be replayed: " +
				"raise it to that of the other topics and some KiB more"},
			lines(Kafka(t.Context(), client, look), "topic "+dead))
		return diff == "", diff
	})
	if got := lines(Kafka(t.Context(), client, look), "kafka"); got[0] != "OK 1 broker" {
		t.Errorf("brokers: got %v", got)
	}

	look.Registry = defined.Registry(t, "tables: {merchant: {topic: "+topic+", key: id, fields: {risk: string}}}\n")
	const forgets = ": rows of tables are missing once retention has removed them: set cleanup.policy=compact, or keep records forever"
	for settings, want := range map[string]string{
		"retention.ms 3600000":                               "WARN cleanup.policy is delete" + forgets,
		"retention.ms -1 retention.bytes 1000":               "WARN cleanup.policy is delete" + forgets,
		"retention.ms 3600000 cleanup.policy compact,delete": "WARN cleanup.policy is compact,delete" + forgets,
		"retention.ms -1":                                    "OK keeps the rows of tables",
		"retention.ms 3600000 cleanup.policy compact":        "OK keeps the rows of tables",
	} {
		set(topic, strings.Fields(settings)...)
		testkit.Eventually(t, time.Minute, "a topic of a table", func() (bool, string) {
			diff := cmp.Diff([]string{"OK 2 partitions", oneCopy, want}, lines(Kafka(t.Context(), client, look), "topic "+topic))
			return diff == "", diff
		})
	}

	look.DeadLetters = "no-such-topic"
	if got := lines(Kafka(t.Context(), client, look), "topic no-such-topic"); len(got) != 1 ||
		got[0] != "FAIL is missing: create it, or set kafka.create_topics; with ACLs, allow Describe on it" {
		t.Errorf("a missing topic: got %v", got)
	}
	look.Create = true
	if got := lines(Kafka(t.Context(), client, look), "topic no-such-topic"); len(got) != 1 ||
		got[0] != "WARN is missing: weir run will create it; create it before to choose its settings" {
		t.Errorf("a topic that weir run will create: got %v", got)
	}
	away := &kafka.Client{Addr: kafka.TCP("127.0.0.1:1"), Timeout: time.Second}
	if got := lines(Kafka(t.Context(), away, look), ""); len(got) != 1 || !strings.HasPrefix(got[0], "FAIL ") ||
		!strings.HasSuffix(got[0], ": check that it runs at kafka.brokers, and who has access") {
		t.Errorf("without brokers: got %v", got)
	}
}

// Partitions whose brokers are down cannot be read, whatever the settings of their topic are.
func TestPartitionsWithoutALeader(t *testing.T) {
	broker := kafka.Broker{Host: "kafka-0", Port: 9092}
	of := func(id int, leader kafka.Broker) kafka.Partition {
		return kafka.Partition{ID: id, Leader: leader, Replicas: []kafka.Broker{broker, broker}}
	}
	topic := kafka.Topic{Name: "pays", Partitions: []kafka.Partition{of(0, broker), of(1, kafka.Broker{}), of(2, kafka.Broker{})}}
	look := Topics{Registry: load(t, "other"), DeadLetters: "dead"}
	want := []string{"OK 3 partitions", "FAIL has no leader for 2 partitions (1, 2): they cannot be read or written: " +
		"start the brokers that have them: kafka-topics.sh --describe says which"}
	if diff := cmp.Diff(want, lines(look.judge(topic, nil), "topic pays")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Topics of enriched events must exist, since weir run ends without them. How they are kept is not judged.
func TestEnrichedTopics(t *testing.T) {
	broker := kafkatest.Embedded(t, map[string]int{"pays": 1, "paid": 2, "dead": 1})
	look := Topics{DeadLetters: "dead", Registry: defined.Registry(t, `
streams:
  pay: {topic: pays, timestamp: at, fields: {user: string}, enrich: {service: risk, topic: paid}}
  more: {topic: pays, timestamp: at, match: user == "more", fields: {user: string}, enrich: {service: risk, topic: missing}}
features: {n: 'COUNT(1d, pay, user)'}
services: {risk: [n]}
`)}
	client := &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...)}
	for topic, want := range map[string][]string{
		"paid":    {"OK 2 partitions", oneCopy},
		"missing": {"FAIL is missing: create it, or set kafka.create_topics; with ACLs, allow Describe on it"},
	} {
		if diff := cmp.Diff(want, lines(Kafka(t.Context(), client, look), "topic "+topic)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", topic, diff)
		}
	}
}

// A list without a name, through which a feature goes, looks back as well.
func TestLongestWindow(t *testing.T) {
	look := Topics{Registry: defined.Registry(t, `
streams:
  pay: {topic: pays, timestamp: at, fields: {user: string, device: string}}
  login: {topic: logins, timestamp: at, fields: {user: string, device: string}}
features:
  spent: COUNT(7d, pay, SET(90d, login, device, user))
  pays: COUNT(1d, pay, user)
  share: {expr: pays / spent}
`)}
	for topic, want := range map[string]time.Duration{"pays": (7*24 + 1) * time.Hour, "logins": (90*24 + 1) * time.Hour} {
		if back, feature := look.longest(topic); back != want || feature != "spent" {
			t.Errorf("%s: %s looks back %v, want spent with %v", topic, feature, back, want)
		}
	}
}

// Brokers that cannot be asked are reported with what to do, without the client's own words.
func TestTopicsUnavailable(t *testing.T) {
	client := &kafka.Client{Addr: kafka.TCP("127.0.0.1:1")} // nothing listens there
	want := []string{"FAIL nothing listens at 127.0.0.1:1: check the address, and that the server runs: check that it runs at kafka.brokers, and who has access"}
	if diff := cmp.Diff(want, lines(Kafka(t.Context(), client, Topics{Registry: load(t, "pays"), DeadLetters: "dead"}), "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrongDefinitions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "features.yaml")
	if err := os.WriteFile(path, []byte("features:\n  a: COUNT(1d, pay, user)\n  a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, f := Definitions([]string{path})
	if registry != nil || f.Count(Fail) != len(f) || len(f) < 2 || !strings.HasPrefix(f[0].Found, path+":2:") ||
		f[0].Do != "correct it; weir validate checks only the definitions" {
		t.Errorf("wrong definitions: got %v", f)
	}
	_, f = Definitions([]string{"/none.yaml"})
	if len(f) != 1 || f[0].Verdict != Fail || f[0].Found != "/none.yaml: cannot read definitions: no such file or directory" {
		t.Errorf("missing definitions: got %v", f)
	}
}

func TestWrite(t *testing.T) {
	f := Findings{{OK, "redis", "Redis 7.0.15", ""}, {Warn, "topic payments", "is small", "make it larger"}, {Fail, "layout", "fits not", "mend it"}}
	want := strings.Join([]string{
		"OK    redis           Redis 7.0.15",
		"WARN  topic payments  is small",
		"                      -> make it larger",
		"FAIL  layout          fits not",
		"                      -> mend it",
		"",
		"1 OK, 1 WARN, 1 FAIL",
		"",
	}, "\n")
	var out strings.Builder
	f.WriteText(&out)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(f[:1]); err != nil {
		t.Fatal(err)
	}
	want = `{
  "findings": [
    {
      "verdict": "OK",
      "subject": "redis",
      "found": "Redis 7.0.15"
    }
  ],
  "ok": 1,
  "warn": 0,
  "fail": 0
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
