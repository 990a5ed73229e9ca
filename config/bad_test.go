package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weir-stream/weir/config"
)

// bad has a file for every finding, with the expected message after the position. TestEveryRuleIsTried checks that no
// rule is missing.
var bad = []struct{ file, want string }{
	{"namespace: a b", `namespace "a b" is not allowed: 1 to 64 letters, digits, dots, underscores or dashes`},
	{"shards: 16385", `shards 16385 is not allowed: 1 to 16384`},
	{"shards: many", `shards "many" is not a whole number`},
	{"shards: [1, 2]", `shards ["1" "2"] is a list, not one value`},
	{"shards: {a: 1}", `shards is one setting, not a section`},
	{"features: []", `features [] is not allowed: at least one file or folder`},
	{"features: [[a]]", `features must be a list of plain texts`},
	{"kafka: {brokers: [a]}", `kafka.brokers [a] is not allowed: one or more host:port`},
	{"kafka: {brokers: [':9092']}", `kafka.brokers [:9092] is not allowed: one or more host:port`},
	{"kafka: {brokers: ['a:0']}", `kafka.brokers [a:0] is not allowed: one or more host:port`},
	{"kafka: {group: ''}", `kafka.group "" is not allowed: any name`},
	{"kafka: {start: newest}", `kafka.start "newest" is not allowed: earliest or latest`},
	{"kafka: {isolation: none}", `kafka.isolation "none" is not allowed: read_committed or read_uncommitted`},
	{"kafka: {dead_letter_topic: a/b}", `kafka.dead_letter_topic "a/b" is not allowed: a topic's name: 1 to 249 letters, digits, dots, underscores or dashes`},
	{"kafka: {group_instance_id: 'a b'}", `kafka.group_instance_id "a b" is not allowed: empty, or 1 to 249 letters, digits, dots, underscores or dashes`},
	{"kafka: {on_broken_batch: ignore}", `kafka.on_broken_batch "ignore" is not allowed: set_aside or stop`},
	{"kafka: {on_damaged_batch: skip}", `kafka.on_damaged_batch "skip" is not allowed: stop or set_aside`},
	{"kafka: {on_data_loss: cry}", `kafka.on_data_loss "cry" is not allowed: stop or continue`},
	{"store: {type: rocksdb}", `store.type "rocksdb" is not allowed: redis or ignite`},
	{"{shards: 1025, store: {type: ignite}}", `store.type "ignite" is not allowed: redis, for more than 1024 shards`},
	{"ignite: {addresses: [localhost]}", `ignite.addresses [localhost] is not allowed: one or more host:port`},
	{"ignite: {username: weir}", `ignite.username "weir" is not allowed: a name where a password is given, and empty elsewhere`},
	{"ignite: {backups: -1}", `ignite.backups -1 is not allowed: 0 to 10`},
	{"ignite: {dial_timeout: 0s}", `ignite.dial_timeout 0s is not allowed: 1ms to 1m`},
	{"ignite: {request_timeout: 1h}", `ignite.request_timeout 1h0m0s is not allowed: 100ms to 1m`},
	{"ignite: {tls: {ca: ca.pem}}", `ignite.tls.enabled false is not allowed: true where ca, cert, key, server_name or insecure_skip_verify beside it is given`},
	{"ignite: {tls: {enabled: true, cert: c.pem}}", `ignite.tls.key "" is not allowed: a file where ignite.tls.cert names one, and empty elsewhere`},
	{"store: {call_mutations: 0}", `store.call_mutations 0 is not allowed: 1 to 2000`},
	{"store: {expiry_slack: 30s}", `store.expiry_slack 30s is not allowed: 1m to 8760h`},
	{"kafka: {max_record_bytes: 10}", `kafka.max_record_bytes 10 is not allowed: 1KiB to 256MiB`},
	{"kafka: {max_record_bytes: 1MB}", `kafka.max_record_bytes "1MB" is not a size such as 4096, 512KiB or 1MiB`},
	{"kafka: {max_record_bytes: 9999999999GiB}", `kafka.max_record_bytes "9999999999GiB" is not a size such as 4096, 512KiB or 1MiB`},
	{"kafka: {create_topics: yes}", `kafka.create_topics "yes" is neither true nor false`},
	{"kafka: {topic_partitions: 0}", `kafka.topic_partitions 0 is not allowed: -1, or 1 to 10000`},
	{"kafka: {topic_replication: 0}", `kafka.topic_replication 0 is not allowed: -1, or 1 to 100`},
	{"kafka: {session_timeout: 1h, heartbeat_interval: 1s}", `kafka.session_timeout 1h0m0s is not allowed: 1s to 30m`},
	{"kafka: {rebalance_timeout: 10ms}", `kafka.rebalance_timeout 10ms is not allowed: 1s to 1h`},
	{"kafka: {heartbeat_interval: 4s}", `kafka.heartbeat_interval 4s is not allowed: 100ms to a third of kafka.session_timeout`},
	{"kafka: {session_timeout: 6s, heartbeat_interval: soon}", `kafka.heartbeat_interval "soon" is not a duration such as 5ms, 1s or 2m`},
	{"kafka: {fetch: {max_bytes: 2GiB}}", `kafka.fetch.max_bytes 2GiB is not allowed: 1KiB to 1GiB`},
	{"kafka: {fetch: {partition_max_bytes: 1KiB}}", `kafka.fetch.partition_max_bytes 1KiB is not allowed: kafka.max_record_bytes to kafka.fetch.max_bytes`},
	{"kafka: {tls: {ca: a.pem}}", `kafka.tls.enabled false is not allowed: true where ca, cert, key, server_name or insecure_skip_verify beside it is given`},
	{"kafka: {tls: {enabled: true, cert: a.pem}}", `kafka.tls.key "" is not allowed: a file where kafka.tls.cert names one, and empty elsewhere`},
	{"kafka: {sasl: {mechanism: kerberos}}", `kafka.sasl.mechanism "kerberos" is not allowed: none, plain, scram-sha-256, scram-sha-512, oauthbearer, aws-msk-iam or gssapi`},
	{"kafka: {sasl: {mechanism: plain}}", `kafka.sasl.username "" is not allowed: a name where kafka.sasl.mechanism is plain, scram-… or gssapi, and empty elsewhere`},
	{"kafka: {sasl: {mechanism: aws-msk-iam, username: u}}", `kafka.sasl.username "u" is not allowed: a name where kafka.sasl.mechanism is plain, scram-… or gssapi, and empty elsewhere`},
	{"kafka: {sasl: {mechanism: oauthbearer}}", `kafka.sasl.oauth.token_url "" is not allowed: a URL such as https://issuer/token, or kafka.sasl.oauth.token_file instead, where kafka.sasl.mechanism is oauthbearer, and empty elsewhere`},
	{"kafka: {sasl: {mechanism: oauthbearer, oauth: {token_url: https://i/t}}}", `kafka.sasl.oauth.client_id "" is not allowed: a name where kafka.sasl.oauth.token_url is given, and empty elsewhere`},
	{"kafka: {sasl: {oauth: {extensions: [logicalCluster]}}}", `kafka.sasl.oauth.extensions [logicalCluster] is not allowed: pairs such as logicalCluster=lkc-1, of letters on the left`},
	{"kafka: {sasl: {mechanism: oauthbearer, oauth: {token_url: https://i/t, client_id: c, client_secret_file: /none/such}}}", `kafka.sasl.oauth.client_secret_file cannot be read: open /none/such: no such file or directory`},
	{"kafka: {sasl: {password_file: /none/such}}", `kafka.sasl.password_file cannot be read: open /none/such: no such file or directory`},
	{"registry: {url: 'https://weir:hunter2@registry:8081'}", `registry.url "https://…@registry:8081" is not allowed: empty, or a URL such as https://registry:8081`},
	{"registry: {url: 'https://weir:p@ss/w?rd@registry:8081/#x'}", `registry.url "https://…@registry:8081/#x" is not allowed: empty, or a URL such as https://registry:8081`},
	{"registry: {url: ['https://weir:hunter2@registry:8081']}", `registry.url ["https://…@registry:8081"] is a list, not one value`},
	{"registry: {url: 'registry:8081'}", `registry.url "registry:8081" is not allowed: empty, or a URL such as https://registry:8081`},
	{"registry: {username: u}", `registry.username "u" is not allowed: a name where registry.password or registry.password_file is given, and empty elsewhere`},
	{"registry: {username: u, password: p, token: t}", `registry.token [redacted] is not allowed: empty where registry.username logs in`},
	{"registry: {timeout: 0s}", `registry.timeout 0s is not allowed: 1ms to 1m`},
	{"registry: {tls: {server_name: a}}", `registry.tls.enabled false is not allowed: true where ca, cert, key, server_name or insecure_skip_verify beside it is given`},
	{"registry: {tls: {enabled: true, cert: a.pem}}", `registry.tls.key "" is not allowed: a file where registry.tls.cert names one, and empty elsewhere`},
	{"redis: {mode: multi}", `redis.mode "multi" is not allowed: single, sentinel or cluster`},
	{"redis: {addresses: ['a:1', 'b:1']}", `redis.addresses [a:1, b:1] is not allowed: one or more host:port, for redis.mode single only one`},
	{"redis: {mode: sentinel}", `redis.master_name "" is not allowed: a name where redis.mode is sentinel, and empty elsewhere`},
	{"redis: {mode: cluster, db: 1}", `redis.db 1 is not allowed: 0 to 15, and 0 when redis.mode is cluster`},
	{"kafka: {sasl: {mechanism: gssapi, username: weir}}", `kafka.sasl.kerberos.keytab "" is not allowed: a file where kafka.sasl.mechanism is gssapi, and empty elsewhere`},
	{"kafka: {sasl: {kerberos: {service: ''}}}", `kafka.sasl.kerberos.service "" is not allowed: a name`},
	{"redis: {elasticache: {cache: Payments}}", `redis.elasticache.cache "Payments" is not allowed: empty, or letters in lower case, digits and dashes, with redis.username, with redis.tls.enabled and without a password`},
	{"redis: {elasticache: {cache: payments}, username: weir}", `redis.elasticache.cache "payments" is not allowed: empty, or letters in lower case, digits and dashes, with redis.username, with redis.tls.enabled and without a password`},
	{"redis: {elasticache: {cache: payments}, tls: {enabled: true}}", `redis.elasticache.cache "payments" is not allowed: empty, or letters in lower case, digits and dashes, with redis.username, with redis.tls.enabled and without a password`},
	{"redis: {elasticache: {cache: payments}, username: weir, password: x, tls: {enabled: true}}", `redis.elasticache.cache "payments" is not allowed: empty, or letters in lower case, digits and dashes, with redis.username, with redis.tls.enabled and without a password`},
	{"redis: {azure: {identity: pod}, username: weir, tls: {enabled: true}}", `redis.azure.identity "pod" is not allowed: empty, workload or managed; if given, with redis.username, with redis.tls.enabled, without a password and without redis.elasticache`},
	{"redis: {azure: {identity: workload}, tls: {enabled: true}}", `redis.azure.identity "workload" is not allowed: empty, workload or managed; if given, with redis.username, with redis.tls.enabled, without a password and without redis.elasticache`},
	{"redis: {azure: {identity: managed}, username: weir}", `redis.azure.identity "managed" is not allowed: empty, workload or managed; if given, with redis.username, with redis.tls.enabled, without a password and without redis.elasticache`},
	{"redis: {azure: {identity: managed}, username: weir, password: x, tls: {enabled: true}}", `redis.azure.identity "managed" is not allowed: empty, workload or managed; if given, with redis.username, with redis.tls.enabled, without a password and without redis.elasticache`},
	{"redis: {azure: {identity: managed}, elasticache: {cache: a}, username: weir, tls: {enabled: true}}", `redis.azure.identity "managed" is not allowed: empty, workload or managed; if given, with redis.username, with redis.tls.enabled, without a password and without redis.elasticache`},
	{"redis: {azure: {client_id: c}}", `redis.azure.client_id "c" is not allowed: empty unless redis.azure.identity is given`},
	{"redis: {read_from: slave}", `redis.read_from "slave" is not allowed: master or replica`},
	{"redis: {read_from: replica}", `redis.replicas [] is not allowed: one or more host:port when redis.mode is single and redis.read_from is replica, and none in other modes`},
	{"redis: {replicas: ['a']}", `redis.replicas [a] is not allowed: one or more host:port when redis.mode is single and redis.read_from is replica, and none in other modes`},
	{"redis: {mode: cluster, replicas: ['a:1']}", `redis.replicas [a:1] is not allowed: one or more host:port when redis.mode is single and redis.read_from is replica, and none in other modes`},
	{"redis: {max_staleness: 499ms}", `redis.max_staleness 499ms is not allowed: 500ms to 1h`},
	{"redis: {pool_size: -1}", `redis.pool_size -1 is not allowed: 0 to 100000`},
	{"redis: {dial_timeout: 0s}", `redis.dial_timeout 0s is not allowed: 1ms to 1m`},
	{"redis: {read_timeout: 0s}", `redis.read_timeout 0s is not allowed: 1ms to 1m`},
	{"redis: {write_timeout: 0s}", `redis.write_timeout 0s is not allowed: 1ms to 1m`},
	{"redis: {tls: {insecure_skip_verify: true}}", `redis.tls.enabled false is not allowed: true where ca, cert, key, server_name or insecure_skip_verify beside it is given`},
	{"redis: {tls: {cert: a.pem, key: a.pem}}", `redis.tls.enabled false is not allowed: true where ca, cert, key, server_name or insecure_skip_verify beside it is given`},
	{"redis: {tls: {enabled: true, key: a.pem}}", `redis.tls.key "a.pem" is not allowed: a file where redis.tls.cert names one, and empty elsewhere`},
	{"redis: {username: u}", `redis.username "u" is not allowed: empty, unless redis.password, redis.password_file, redis.elasticache or redis.azure logs it in`},
	{"redis: {mode: sentinel, master_name: m, sentinel_username: u}", `redis.sentinel_username "u" is not allowed: empty, unless redis.sentinel_password or redis.sentinel_password_file is given`},
	{"redis: {password: hunter2, password_file: weir.yaml}", `redis.password_file is given as well as the password; omit one of them`},
	{"redis: {password: [hunter2]}", `redis.password is a list, not one value`},
	{"processor: {workers: -1}", `processor.workers -1 is not allowed: 0 to 1024`},
	{"processor: {commit_interval: 1ms}", `processor.commit_interval 1ms is not allowed: 10ms to 1m`},
	{"processor: {shutdown_timeout: 0s}", `processor.shutdown_timeout 0s is not allowed: 1ms to 10m`},
	{"processor: {batch: {max_events: 0}}", `processor.batch.max_events 0 is not allowed: 1 to 1000000`},
	{"processor: {batch: {max_bytes: 1}}", `processor.batch.max_bytes 1 is not allowed: 1KiB to 1GiB`},
	{"backfill: {mode: on}", `backfill.mode "on" is not allowed: auto or off`},
	{"backfill: {rate: 2}", `backfill.rate 2 is not allowed: 0.01 to 1`},
	{"processor: {freshness: -1s}", `processor.freshness -1s is not allowed: 1ms to 10s`},
	{"api: {listen: '8080'}", `api.listen "8080" is not allowed: host:port, or :port for every interface`},
	{"api: {hosts: ['weir:8080']}", `api.hosts [weir:8080] is not allowed: names such as weir-api or *.example.com, without scheme and port`},
	{"api: {hosts: ['*']}", `api.hosts [*] is not allowed: names such as weir-api or *.example.com, without scheme and port`},
	{"api: {max_body_bytes: 1}", `api.max_body_bytes 1 is not allowed: 1KiB to 256MiB`},
	{"api: {max_values: 0}", `api.max_values 0 is not allowed: 1 to 1000000`},
	{"api: {max_answer_bytes: 1}", `api.max_answer_bytes 1 is not allowed: 1KiB to 1GiB`},
	{"api: {timeout: 0s}", `api.timeout 0s is not allowed: 1ms to 5m`},
	{"api: {shutdown_timeout: 0s}", `api.shutdown_timeout 0s is not allowed: 1ms to 10m`},
	{"api: {max_concurrent: 0}", `api.max_concurrent 0 is not allowed: 1 to 1000000`},
	{"api: {max_inflight_bytes: 1KiB}", `api.max_inflight_bytes 1KiB is not allowed: 1MiB to 1TiB`},
	{"api: {tls: {cert: a.pem}}", `api.tls.key "" is not allowed: a file where api.tls.cert names one, and empty elsewhere`},
	{"api: {tokens_file: t, tls: {client_ca: a.pem}}", `api.tls.client_ca "a.pem" is not allowed: empty, unless api.tls.cert names a file`},
	{"api: {tls: {cert: a.pem, key: a.key, client_ca: a.pem}}", `api.tls.clients_file "" is not allowed: a file where api.tls.client_ca names one and tokens, which have scopes, are not required, and empty elsewhere`},
	{"api: {tls: {cert: a.pem, key: a.key, clients_file: c}}", `api.tls.clients_file "c" is not allowed: a file where api.tls.client_ca names one and tokens, which have scopes, are not required, and empty elsewhere`},
	{"api: {tokens_file: t, tls: {cert: a.pem, key: a.key, client_ca: a.pem, clients_file: c}}", `api.tls.clients_file "c" is not allowed: a file where api.tls.client_ca names one and tokens, which have scopes, are not required, and empty elsewhere`},
	{"api: {oidc: {issuer: login, audience: weir}}", `api.oidc.issuer "login" is not allowed: empty, or a URL such as https://login.example.com/realms/risk`},
	{"api: {oidc: {issuer: 'https://login'}}", `api.oidc.audience "" is not allowed: a name where api.oidc.issuer is given, and empty elsewhere`},
	{"api: {oidc: {audience: weir}}", `api.oidc.audience "weir" is not allowed: a name where api.oidc.issuer is given, and empty elsewhere`},
	{"api: {oidc: {scope_claim: ''}}", `api.oidc.scope_claim "" is not allowed: the name of a claim`},
	{"log: {level: loud}", `log.level "loud" is not allowed: debug, info, warn or error`},
	{"log: {format: xml}", `log.format "xml" is not allowed: text or json`},
	{"profiles: {listen: '6060'}", `profiles.listen "6060" is not allowed: empty, host:port, or :port on this machine alone`},
	{"tracing: {endpoint: 'localhost:4318'}", `tracing.endpoint "localhost:4318" is not allowed: empty, or a URL such as http://localhost:4318/v1/traces`},
	{"tracing: {endpoint: 'grpc://localhost:4317'}", `tracing.endpoint "grpc://localhost:4317" is not allowed: empty, or a URL such as http://localhost:4318/v1/traces`},
	{"tracing: {endpoint: 'http://:4318'}", `tracing.endpoint "http://:4318" is not allowed: empty, or a URL such as http://localhost:4318/v1/traces`},
	{"tracing: {endpoint: 'http://c:4318?key=k'}", `tracing.endpoint "http://c:4318?key=k" is not allowed: empty, or a URL such as http://localhost:4318/v1/traces`},
	{"tracing: {sample_ratio: 1.5}", `tracing.sample_ratio 1.5 is not allowed: 0 to 1`},
	{"tracing: {sample_ratio: NaN}", `tracing.sample_ratio NaN is not allowed: 0 to 1`},
	{"tracing: {sample_ratio: 1%}", `tracing.sample_ratio "1%" is not a number`},

	{"brokers: [a:1]", `brokers is not a setting; did you mean kafka.brokers?`},
	{"kafka: {groop: a}", `kafka.groop is not a setting; did you mean kafka.group?`},
	{"Kafka: {group: a}", `Kafka is not a setting; did you mean kafka?`},
	{"weather: fine", `weather is not a setting`},
	{"kafka: [a]", `kafka is a section and needs settings below it`},
	{"shards: 1\nshards: 2", `shards is already set in line 1`},
	{"- a", `is a section and needs settings below it`},
	{"a: b: c", `is not YAML: mapping values are not allowed in this context; check the indentation, and quote a text that contains a colon and a space`},
}

func TestBadFiles(t *testing.T) {
	for _, b := range bad {
		t.Run(b.file, func(t *testing.T) {
			_, err := config.Load(write(t, b.file), nil)
			got := strings.TrimLeft(strings.TrimPrefix(fmt.Sprint(err), "weir.yaml:"), "0123456789")
			if got = strings.TrimPrefix(got, ": "); got != b.want {
				t.Errorf("\ngot  %s\nwant %s", got, b.want)
			}
		})
	}
}

func TestLocationOfFinding(t *testing.T) {
	_, err := config.Load(write(t, "kafka:\n  brokers:\n    - a:1\n   group: b\n"), nil)
	if want := `weir.yaml:4: is not YAML: did not find expected key; check the indentation and the quotes`; fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = config.Load(write(t, "shards: 1\n\nkafka:\n  group: ''\n"), nil)
	if want := `weir.yaml:4: kafka.group "" is not allowed: any name`; fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func FuzzLoad(f *testing.F) {
	for _, b := range bad {
		f.Add(b.file)
	}
	defaults, err := os.ReadFile("weir.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(defaults))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Load(write(t, text), nil)
		if (c == nil) != (err != nil) {
			t.Errorf("Load = %v, %v; want either settings or an error", c, err)
		}
	})
}
