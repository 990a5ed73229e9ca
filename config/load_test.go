package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/weir-stream/weir/config"
)

// write creates a settings file that findings name "weir.yaml".
func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("weir.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "weir.yaml"
}

func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	set := pflag.NewFlagSet("weir", pflag.ContinueOnError)
	config.Flags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestFileThatTheEnvironmentNames(t *testing.T) {
	file := write(t, "namespace: variable\n")
	t.Setenv("WEIR_CONFIG", file)
	given := filepath.Join(t.TempDir(), "given.yaml")
	if err := os.WriteFile(given, []byte("namespace: given\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"": "variable", given: "given"} {
		if c, err := config.Load(file, nil); err != nil || c.Namespace != want {
			t.Errorf("with the file %q and WEIR_CONFIG the settings are %+v, %v; want the namespace %s", file, c, err, want)
		}
	}
	t.Setenv("WEIR_CONFIG", "none.yaml")
	if _, err := config.Load("", nil); err == nil || err.Error() != "WEIR_CONFIG: open none.yaml: no such file or directory" {
		t.Errorf("a file that does not exist: %v", err)
	}
}

func TestReferenceFileGivesTheDefaults(t *testing.T) {
	got, err := config.Load("weir.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	none, err := config.Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(none, got); diff != "" {
		t.Error("weir.yaml differs from the defaults:\n", diff)
	}
}

func TestDefaults(t *testing.T) {
	want := &config.Config{
		Namespace: "weir",
		Shards:    4,
		Features:  []string{"config/features"},
		Kafka: config.Kafka{
			Brokers: []string{"localhost:9092"}, Group: "weir", ClientID: "weir",
			Start: "earliest", Isolation: "read_committed",
			DeadLetterTopic: "weir.dead-letters", OnDataLoss: "stop", OnBrokenBatch: "set_aside", OnDamagedBatch: "stop", MaxRecordBytes: 1 << 20,
			TopicPartitions: -1, TopicReplication: -1,
			SessionTimeout: 10 * time.Second, RebalanceTimeout: 30 * time.Second, HeartbeatInterval: 3 * time.Second,
			Fetch: config.Fetch{MaxBytes: 32 << 20, PartitionMaxBytes: 1 << 20},
			SASL: config.SASL{
				Mechanism: "none", OAuth: config.OAuth{Scopes: []string{}, Extensions: []string{}},
				Kerberos: config.Kerberos{Service: "kafka", Config: "/etc/krb5.conf"},
			},
		},
		Registry: config.Registry{Timeout: 5 * time.Second},
		Redis: config.Redis{
			ReadFrom: "master", Replicas: []string{}, MaxStaleness: 5 * time.Second,
			Mode: "single", Addresses: []string{"localhost:6379"},
			DialTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second,
		},
		Ignite: config.Ignite{Addresses: []string{"localhost:10800"}, Backups: 1, DialTimeout: 2 * time.Second, RequestTimeout: 5 * time.Second},
		Store:  config.Store{Type: "redis", ExpirySlack: time.Hour, CallMutations: 1500},
		Processor: config.Processor{
			Freshness: 24 * time.Millisecond, CommitInterval: time.Second, ShutdownTimeout: 20 * time.Second,
			Batch: config.BatchLimits{MaxEvents: 20000, MaxBytes: 16 << 20},
		},
		Backfill: config.Backfill{Mode: "auto", Rate: 0.5},
		API: config.API{
			Listen: "127.0.0.1:8080", MaxBodyBytes: 1 << 20, MaxValues: 10000, MaxAnswerBytes: 16 << 20,
			Timeout: 2 * time.Second, ShutdownTimeout: 10 * time.Second, MaxConcurrent: 500, MaxInFlight: 256 << 20, Hosts: []string{},
			OIDC: config.OIDC{ScopeClaim: "scope"},
		},
		Log:     config.Log{Level: "info", Format: "text"},
		Tracing: config.Tracing{SampleRatio: 0.01},
	}
	if diff := cmp.Diff(want, config.Default()); diff != "" {
		t.Error(diff)
	}
}

func TestLaterSourcesAreStronger(t *testing.T) {
	file := write(t, "shards: 2\nnamespace: file\nkafka: {group: file}\n")
	t.Setenv("WEIR_NAMESPACE", "environment")
	t.Setenv("WEIR_KAFKA_GROUP", "environment")
	got, err := config.Load(file, flags(t, "--kafka.group=flag"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Shards != 2 || got.Namespace != "environment" || got.Kafka.Group != "flag" {
		t.Errorf("shards, namespace, group = %d, %s, %s; want 2, environment, flag", got.Shards, got.Namespace, got.Kafka.Group)
	}
}

func TestListsFromEverySource(t *testing.T) {
	file := write(t, "features: [a, 'b,c']\n")
	t.Setenv("WEIR_KAFKA_BROKERS", "k1:9092, k2:9092")
	got, err := config.Load(file, flags(t, "--redis.mode=cluster", "--redis.addresses=r1:6379,r2:6379"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want []string }{
		{got.Features, []string{"a", "b,c"}},
		{got.Kafka.Brokers, []string{"k1:9092", "k2:9092"}},
		{got.Redis.Addresses, []string{"r1:6379", "r2:6379"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Error(diff)
		}
	}
}

// Each document of a file counts, and none sets anything twice.
func TestSeveralDocuments(t *testing.T) {
	got, err := config.Load(write(t, "namespace: risk\n---\nshards: 8\n---\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Namespace != "risk" || got.Shards != 8 {
		t.Errorf("namespace, shards = %s, %d; want risk, 8", got.Namespace, got.Shards)
	}
	_, err = config.Load(write(t, "shards: 8\n---\nshards: 4\nkafka: [\n"), nil)
	if want := "weir.yaml:4: is not YAML: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
	_, err = config.Load(write(t, "shards: 8\n---\nshards: 4\n"), nil)
	if want := "weir.yaml:3: shards is already set in line 1"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestBareFlagSwitchesOn(t *testing.T) {
	got, err := config.Load("", flags(t, "--kafka.create_topics"))
	if err != nil {
		t.Fatal(err)
	}
	if !got.Kafka.CreateTopics {
		t.Error("--kafka.create_topics without a value does not switch it on")
	}
}

// Definitions of a flag that is given twice are not left out.
func TestFeaturesOfSeveralFlags(t *testing.T) {
	t.Setenv("WEIR_FEATURES", "environment")
	got, err := config.Load(write(t, "features: [file]\n"), flags(t, "--features=a, b", "--shards=2", "--features", "c", "--shards=8"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got.Features); diff != "" || got.Shards != 8 {
		t.Errorf("shards %d, want 8; features (-want +got):\n%s", got.Shards, diff)
	}
}

func TestPasswordsHaveNoFlag(t *testing.T) {
	set := flags(t)
	for _, key := range []string{"kafka.sasl.password", "redis.password", "redis.sentinel_password"} {
		if set.Lookup(key) != nil {
			t.Errorf("there is a flag --%s", key)
		}
		if set.Lookup(key+"_file") == nil {
			t.Errorf("there is no flag --%s_file", key)
		}
	}
}

func TestEmptyAndNullLeaveTheDefault(t *testing.T) {
	file := write(t, "namespace: ~\nkafka:\nredis: {db: }\n")
	t.Setenv("WEIR_KAFKA_GROUP", "")
	got, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), got); diff != "" {
		t.Error(diff)
	}
}

func TestAliases(t *testing.T) {
	got, err := config.Load(write(t, "namespace: &name risk\nkafka: {group: *name}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Kafka.Group != "risk" {
		t.Errorf("group = %q, want risk", got.Kafka.Group)
	}
}

func TestVariablesOfOthersAreLeftAlone(t *testing.T) {
	for _, name := range []string{
		"WEIR_TEST_REDIS", "WEIR_KAFKA_HOME", "WEIR_IGNITE_HOME", // used by the tests
		"WEIR_PORT", "WEIR_SERVICE_HOST", "WEIR_SERVICE_PORT_HTTP", "WEIR_PORT_8080_TCP_ADDR", // set by Kubernetes for a service "weir"
		"WEIR_API_PORT", "WEIR_API_SERVICE_PORT", "WEIR_API_PORT_8080_TCP", // and for "weir-api"
	} {
		t.Setenv(name, "x")
	}
	if _, err := config.Load("", nil); err != nil {
		t.Error(err)
	}
}

func TestMissingFile(t *testing.T) {
	_, err := config.Load("none.yaml", nil)
	if want := "settings: open none.yaml: no such file or directory"; fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestPasswordFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(" pass word\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load("", flags(t,
		"--kafka.sasl.mechanism=plain", "--kafka.sasl.username=u", "--kafka.sasl.password_file="+secret,
		"--redis.password_file="+secret, "--redis.sentinel_password_file="+secret))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := config.Load("", flags(t, "--registry.url=http://registry:8081", "--registry.username=u", "--registry.password_file="+secret))
	if err != nil {
		t.Fatal(err)
	}
	token, err := config.Load("", flags(t, "--registry.url=http://registry:8081", "--registry.token_file="+secret))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []config.Secret{
		got.Kafka.SASL.Password, got.Redis.Password, got.Redis.SentinelPassword, registry.Registry.Password, token.Registry.Token,
	} {
		if string(p) != " pass word" {
			t.Errorf("password = %q, want %q", string(p), " pass word")
		}
	}
}

// A Secret that nothing was written into would leave out the login, or show no password.
func TestEmptyPasswordFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"redis.password_file", "redis.sentinel_password_file", "registry.token_file"} {
		_, err := config.Load("", flags(t, "--"+key+"="+empty))
		if want := "--" + key + ": " + key + " names " + empty + ", which is empty"; fmt.Sprint(err) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestEveryFindingAtOnce(t *testing.T) {
	file := write(t, "shards: 0\nkafka:\n  brokerz: [a:1]\n  start: now\nredis: single\n")
	t.Setenv("WEIR_LOG_LEVLE", "debug")
	t.Setenv("WEIR_LOG_FORMAT", "xml")
	_, err := config.Load(file, flags(t, "--api.timeout=5"))
	want := strings.Join([]string{
		`weir.yaml:3: kafka.brokerz is not a setting; did you mean kafka.brokers?`,
		`weir.yaml:5: redis is a section and needs settings below it`,
		`WEIR_LOG_LEVLE: is not a setting; did you mean WEIR_LOG_LEVEL?`,
		`--api.timeout: api.timeout "5" is not a duration such as 5ms, 1s or 2m`,
		`weir.yaml:1: shards 0 is not allowed: 1 to 16384`,
		`weir.yaml:4: kafka.start "now" is not allowed: earliest or latest`,
		`WEIR_LOG_FORMAT: log.format "xml" is not allowed: text or json`,
	}, "\n")
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
}

// Definitions that are not there are reported where the settings name them.
func TestMissingDefinitions(t *testing.T) {
	file := write(t, "shards: 1\nfeatures:\n  - none.yaml\n  - .\n")
	for args, want := range map[string]string{
		"":                         "weir.yaml:2: features names none.yaml, which cannot be read: no such file or directory",
		"--features=/no/such":      "--features: features names /no/such, which cannot be read: no such file or directory",
		"--features=weir.yaml/sub": "--features: features names weir.yaml/sub, which cannot be read: not a directory",
	} {
		given := flags(t, strings.Fields(args)...)
		c, err := config.Load(file, given)
		if err != nil {
			t.Fatal(err)
		}
		if err := config.CheckDefinitions(c, file, given); fmt.Sprint(err) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	given := flags(t, "--features=weir.yaml")
	c, err := config.Load(file, given)
	if err != nil {
		t.Fatal(err)
	}
	if err := config.CheckDefinitions(c, file, given); err != nil {
		t.Error(err)
	}
}

// A setting that is judged by another one is not blamed for a mistake there.
func TestTheWrongSettingIsBlamed(t *testing.T) {
	for text, want := range map[string]string{
		"kafka: {sasl: {mechanism: SCRAM-SHA-512, username: u, password: p}}": `weir.yaml:1: kafka.sasl.mechanism "SCRAM-SHA-512" is not allowed: none, plain, scram-sha-256, scram-sha-512, oauthbearer, aws-msk-iam or gssapi`,
		"redis: {mode: sentinels, master_name: m}":                            `weir.yaml:1: redis.mode "sentinels" is not allowed: single, sentinel or cluster`,
		"kafka: {session_timeout: long, heartbeat_interval: 1h}":              `weir.yaml:1: kafka.session_timeout "long" is not a duration such as 5ms, 1s or 2m`,
	} {
		if _, err := config.Load(write(t, text), nil); fmt.Sprint(err) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
