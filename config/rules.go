package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rule defines which values a setting may have.
type rule struct {
	key     string
	allowed string // ends the sentence "… is not allowed: "
	ok      func(c *Config) bool
}

var (
	namespaceName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	topicName     = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
	cacheName     = regexp.MustCompile(`^[a-z0-9-]+$`)
	extension     = regexp.MustCompile(`^[A-Za-z]+=[ -~]+$`)
	hostName      = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?$`)
)

var rules = []rule{
	{"namespace", "1 to 64 letters, digits, dots, underscores or dashes", func(c *Config) bool { return namespaceName.MatchString(c.Namespace) }},
	{"shards", "1 to 16384", func(c *Config) bool { return within(c.Shards, 1, 16384) }},
	{"features", "at least one file or folder", func(c *Config) bool { return len(c.Features) > 0 }},

	oneOf("store.type", func(c *Config) string { return c.Store.Type }, "redis", "ignite"),
	{"store.type", "redis, for more than 1024 shards", func(c *Config) bool { return c.Store.Type != "ignite" || c.Shards <= 1024 }},
	{"store.call_mutations", "1 to 2000", func(c *Config) bool { return within(c.Store.CallMutations, 1, 2000) }},
	{"store.expiry_slack", "1m to 8760h", func(c *Config) bool { return within(c.Store.ExpirySlack, time.Minute, 8760*time.Hour) }},

	{"kafka.brokers", "one or more host:port", func(c *Config) bool { return addresses(c.Kafka.Brokers) }},
	{"kafka.group", "any name", func(c *Config) bool { return c.Kafka.Group != "" }},
	{"kafka.group_instance_id", "empty, or 1 to 249 letters, digits, dots, underscores or dashes", func(c *Config) bool {
		return c.Kafka.GroupInstanceID == "" || topicName.MatchString(c.Kafka.GroupInstanceID)
	}},
	oneOf("kafka.start", func(c *Config) string { return c.Kafka.Start }, "earliest", "latest"),
	oneOf("kafka.isolation", func(c *Config) string { return c.Kafka.Isolation }, "read_committed", "read_uncommitted"),
	{"kafka.dead_letter_topic", "a topic's name: 1 to 249 letters, digits, dots, underscores or dashes", func(c *Config) bool { return topicName.MatchString(c.Kafka.DeadLetterTopic) }},
	oneOf("kafka.on_data_loss", func(c *Config) string { return c.Kafka.OnDataLoss }, "stop", "continue"),
	oneOf("kafka.on_broken_batch", func(c *Config) string { return c.Kafka.OnBrokenBatch }, "set_aside", "stop"),
	oneOf("kafka.on_damaged_batch", func(c *Config) string { return c.Kafka.OnDamagedBatch }, "stop", "set_aside"),
	{"kafka.max_record_bytes", "1KiB to 256MiB", func(c *Config) bool { return within(c.Kafka.MaxRecordBytes, 1<<10, 256<<20) }},
	{"kafka.topic_partitions", "-1, or 1 to 10000", func(c *Config) bool {
		return c.Kafka.TopicPartitions == -1 || within(c.Kafka.TopicPartitions, 1, 10000)
	}},
	{"kafka.topic_replication", "-1, or 1 to 100", func(c *Config) bool {
		return c.Kafka.TopicReplication == -1 || within(c.Kafka.TopicReplication, 1, 100)
	}},
	{"kafka.session_timeout", "1s to 30m", func(c *Config) bool { return within(c.Kafka.SessionTimeout, time.Second, 30*time.Minute) }},
	{"kafka.rebalance_timeout", "1s to 1h", func(c *Config) bool { return within(c.Kafka.RebalanceTimeout, time.Second, time.Hour) }},
	{"kafka.heartbeat_interval", "100ms to a third of kafka.session_timeout", func(c *Config) bool {
		return within(c.Kafka.HeartbeatInterval, 100*time.Millisecond, c.Kafka.SessionTimeout/3)
	}},
	{"kafka.fetch.max_bytes", "1KiB to 1GiB", func(c *Config) bool { return within(c.Kafka.Fetch.MaxBytes, 1<<10, 1<<30) }},
	{"kafka.fetch.partition_max_bytes", "kafka.max_record_bytes to kafka.fetch.max_bytes", func(c *Config) bool {
		return within(c.Kafka.Fetch.PartitionMaxBytes, c.Kafka.MaxRecordBytes, c.Kafka.Fetch.MaxBytes)
	}},
	inEffect("kafka.tls.enabled", func(c *Config) TLS { return c.Kafka.TLS }),
	{"kafka.tls.key", "a file where kafka.tls.cert names one, and empty elsewhere", func(c *Config) bool { return (c.Kafka.TLS.Key == "") == (c.Kafka.TLS.Cert == "") }},
	oneOf("kafka.sasl.mechanism", func(c *Config) string { return c.Kafka.SASL.Mechanism }, "none", "plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "aws-msk-iam", "gssapi"),
	{"kafka.sasl.username", "a name where kafka.sasl.mechanism is plain, scram-… or gssapi, and empty elsewhere", func(c *Config) bool {
		m := c.Kafka.SASL.Mechanism
		return (c.Kafka.SASL.Username != "") == (m == "plain" || m == "gssapi" || strings.HasPrefix(m, "scram-"))
	}},
	{"kafka.sasl.kerberos.keytab", "a file where kafka.sasl.mechanism is gssapi, and empty elsewhere", func(c *Config) bool {
		return (c.Kafka.SASL.Kerberos.Keytab != "") == (c.Kafka.SASL.Mechanism == "gssapi")
	}},
	{"kafka.sasl.kerberos.service", "a name", func(c *Config) bool { return c.Kafka.SASL.Kerberos.Service != "" }},
	{"kafka.sasl.oauth.token_url", "a URL such as https://issuer/token, or kafka.sasl.oauth.token_file instead, where kafka.sasl.mechanism is oauthbearer, and empty elsewhere", func(c *Config) bool {
		o := &c.Kafka.SASL.OAuth
		if c.Kafka.SASL.Mechanism != "oauthbearer" {
			return o.TokenURL == "" && o.TokenFile == ""
		}
		return (o.TokenURL == "") != (o.TokenFile == "") && (o.TokenURL == "" || plainURL(o.TokenURL))
	}},
	{"kafka.sasl.oauth.client_id", "a name where kafka.sasl.oauth.token_url is given, and empty elsewhere", func(c *Config) bool {
		return (c.Kafka.SASL.OAuth.ClientID == "") == (c.Kafka.SASL.OAuth.TokenURL == "")
	}},
	{"kafka.sasl.oauth.extensions", "pairs such as logicalCluster=lkc-1, of letters on the left", func(c *Config) bool {
		return !slices.ContainsFunc(c.Kafka.SASL.OAuth.Extensions, func(pair string) bool { return !extension.MatchString(pair) })
	}},

	{"registry.url", "empty, or a URL such as https://registry:8081", func(c *Config) bool { return c.Registry.URL == "" || plainURL(c.Registry.URL) }},
	{"registry.username", "a name where registry.password or registry.password_file is given, and empty elsewhere", func(c *Config) bool {
		return (c.Registry.Username != "") == (c.Registry.Password != "" || c.Registry.PasswordFile != "")
	}},
	{"registry.token", "empty where registry.username logs in", func(c *Config) bool {
		return c.Registry.Username == "" || c.Registry.Token == "" && c.Registry.TokenFile == ""
	}},
	{"registry.timeout", "1ms to 1m", func(c *Config) bool { return within(c.Registry.Timeout, time.Millisecond, time.Minute) }},
	inEffect("registry.tls.enabled", func(c *Config) TLS { return c.Registry.TLS }),
	{"registry.tls.key", "a file where registry.tls.cert names one, and empty elsewhere", func(c *Config) bool { return (c.Registry.TLS.Key == "") == (c.Registry.TLS.Cert == "") }},

	oneOf("redis.mode", func(c *Config) string { return c.Redis.Mode }, "single", "sentinel", "cluster"),
	{"redis.addresses", "one or more host:port, for redis.mode single only one", func(c *Config) bool {
		return addresses(c.Redis.Addresses) && (c.Redis.Mode != "single" || len(c.Redis.Addresses) == 1)
	}},
	{"redis.master_name", "a name where redis.mode is sentinel, and empty elsewhere", func(c *Config) bool {
		return (c.Redis.MasterName != "") == (c.Redis.Mode == "sentinel")
	}},
	{"redis.username", "empty, unless redis.password, redis.password_file, redis.elasticache or redis.azure logs it in", func(c *Config) bool {
		r := &c.Redis
		return r.Username == "" || r.Password != "" || r.PasswordFile != "" || r.ElastiCache.Cache != "" || r.Azure.Identity != ""
	}},
	{"redis.sentinel_username", "empty, unless redis.sentinel_password or redis.sentinel_password_file is given", func(c *Config) bool {
		r := &c.Redis
		return r.SentinelUsername == "" || r.SentinelPassword != "" || r.SentinelPasswordFile != ""
	}},
	{"redis.elasticache.cache", "empty, or letters in lower case, digits and dashes, with redis.username, with redis.tls.enabled and without a password", func(c *Config) bool {
		r := &c.Redis
		return r.ElastiCache.Cache == "" || cacheName.MatchString(r.ElastiCache.Cache) && r.Username != "" && r.TLS.Enabled && r.Password == "" && r.PasswordFile == ""
	}},
	{"redis.azure.identity", "empty, workload or managed; if given, with redis.username, with redis.tls.enabled, without a password and without redis.elasticache", func(c *Config) bool {
		r := &c.Redis
		return r.Azure.Identity == "" || slices.Contains([]string{"workload", "managed"}, r.Azure.Identity) &&
			r.Username != "" && r.TLS.Enabled && r.Password == "" && r.PasswordFile == "" && r.ElastiCache.Cache == ""
	}},
	{"redis.azure.client_id", "empty unless redis.azure.identity is given", func(c *Config) bool {
		return c.Redis.Azure.ClientID == "" || c.Redis.Azure.Identity != ""
	}},
	oneOf("redis.read_from", func(c *Config) string { return c.Redis.ReadFrom }, "master", "replica"),
	{"redis.replicas", "one or more host:port when redis.mode is single and redis.read_from is replica, and none in other modes", func(c *Config) bool {
		if len(c.Redis.Replicas) == 0 {
			return c.Redis.Mode != "single" || c.Redis.ReadFrom != "replica"
		}
		return c.Redis.Mode == "single" && addresses(c.Redis.Replicas)
	}},
	{"redis.max_staleness", "500ms to 1h", func(c *Config) bool { return within(c.Redis.MaxStaleness, 500*time.Millisecond, time.Hour) }},
	{"redis.db", "0 to 15, and 0 when redis.mode is cluster", func(c *Config) bool {
		return within(c.Redis.DB, 0, 15) && (c.Redis.Mode != "cluster" || c.Redis.DB == 0)
	}},
	{"redis.pool_size", "0 to 100000", func(c *Config) bool { return within(c.Redis.PoolSize, 0, 100000) }},
	{"redis.dial_timeout", "1ms to 1m", func(c *Config) bool { return within(c.Redis.DialTimeout, time.Millisecond, time.Minute) }},
	{"redis.read_timeout", "1ms to 1m", func(c *Config) bool { return within(c.Redis.ReadTimeout, time.Millisecond, time.Minute) }},
	{"redis.write_timeout", "1ms to 1m", func(c *Config) bool { return within(c.Redis.WriteTimeout, time.Millisecond, time.Minute) }},
	{"ignite.addresses", "one or more host:port", func(c *Config) bool { return addresses(c.Ignite.Addresses) }},
	{"ignite.username", "a name where a password is given, and empty elsewhere", func(c *Config) bool {
		return (c.Ignite.Username == "") == (c.Ignite.Password == "" && c.Ignite.PasswordFile == "")
	}},
	{"ignite.backups", "0 to 10", func(c *Config) bool { return within(c.Ignite.Backups, 0, 10) }},
	{"ignite.dial_timeout", "1ms to 1m", func(c *Config) bool { return within(c.Ignite.DialTimeout, time.Millisecond, time.Minute) }},
	{"ignite.request_timeout", "100ms to 1m", func(c *Config) bool { return within(c.Ignite.RequestTimeout, 100*time.Millisecond, time.Minute) }},
	inEffect("ignite.tls.enabled", func(c *Config) TLS { return c.Ignite.TLS }),
	{"ignite.tls.key", "a file where ignite.tls.cert names one, and empty elsewhere", func(c *Config) bool { return (c.Ignite.TLS.Key == "") == (c.Ignite.TLS.Cert == "") }},
	inEffect("redis.tls.enabled", func(c *Config) TLS { return c.Redis.TLS }),
	{"redis.tls.key", "a file where redis.tls.cert names one, and empty elsewhere", func(c *Config) bool { return (c.Redis.TLS.Key == "") == (c.Redis.TLS.Cert == "") }},

	{"processor.workers", "0 to 1024", func(c *Config) bool { return within(c.Processor.Workers, 0, 1024) }},
	{"processor.freshness", "1ms to 10s", func(c *Config) bool { return within(c.Processor.Freshness, time.Millisecond, 10*time.Second) }},
	{"processor.commit_interval", "10ms to 1m", func(c *Config) bool { return within(c.Processor.CommitInterval, 10*time.Millisecond, time.Minute) }},
	{"processor.shutdown_timeout", "1ms to 10m", func(c *Config) bool { return within(c.Processor.ShutdownTimeout, time.Millisecond, 10*time.Minute) }},
	{"processor.batch.max_events", "1 to 1000000", func(c *Config) bool { return within(c.Processor.Batch.MaxEvents, 1, 1000000) }},
	{"processor.batch.max_bytes", "1KiB to 1GiB", func(c *Config) bool { return within(c.Processor.Batch.MaxBytes, 1<<10, 1<<30) }},

	oneOf("backfill.mode", func(c *Config) string { return c.Backfill.Mode }, "auto", "off"),
	{"backfill.rate", "0.01 to 1", func(c *Config) bool { return 0.01 <= c.Backfill.Rate && c.Backfill.Rate <= 1 }},

	{"api.listen", "host:port, or :port for every interface", func(c *Config) bool { return address(c.API.Listen, 0) }},
	{"api.hosts", "names such as weir-api or *.example.com, without scheme and port", func(c *Config) bool { return !slices.ContainsFunc(c.API.Hosts, notHost) }},
	{"api.max_body_bytes", "1KiB to 256MiB", func(c *Config) bool { return within(c.API.MaxBodyBytes, 1<<10, 256<<20) }},
	{"api.max_values", "1 to 1000000", func(c *Config) bool { return within(c.API.MaxValues, 1, 1000000) }},
	{"api.max_answer_bytes", "1KiB to 1GiB", func(c *Config) bool { return within(c.API.MaxAnswerBytes, 1<<10, 1<<30) }},
	{"api.timeout", "1ms to 5m", func(c *Config) bool { return within(c.API.Timeout, time.Millisecond, 5*time.Minute) }},
	{"api.shutdown_timeout", "1ms to 10m", func(c *Config) bool { return within(c.API.ShutdownTimeout, time.Millisecond, 10*time.Minute) }},
	{"api.max_concurrent", "1 to 1000000", func(c *Config) bool { return within(c.API.MaxConcurrent, 1, 1000000) }},
	{"api.max_inflight_bytes", "1MiB to 1TiB", func(c *Config) bool { return within(c.API.MaxInFlight, 1<<20, 1<<40) }},
	{"api.oidc.issuer", "empty, or a URL such as https://login.example.com/realms/risk", func(c *Config) bool { return c.API.OIDC.Issuer == "" || plainURL(c.API.OIDC.Issuer) }},
	{"api.oidc.audience", "a name where api.oidc.issuer is given, and empty elsewhere", func(c *Config) bool { return (c.API.OIDC.Audience == "") == (c.API.OIDC.Issuer == "") }},
	{"api.oidc.scope_claim", "the name of a claim", func(c *Config) bool { return c.API.OIDC.ScopeClaim != "" }},
	{"api.tls.key", "a file where api.tls.cert names one, and empty elsewhere", func(c *Config) bool { return (c.API.TLS.Key == "") == (c.API.TLS.Cert == "") }},
	{"api.tls.client_ca", "empty, unless api.tls.cert names a file", func(c *Config) bool { return c.API.TLS.ClientCA == "" || c.API.TLS.Cert != "" }},
	{"api.tls.clients_file", "a file where api.tls.client_ca names one and tokens, which have scopes, are not required, and empty elsewhere", func(c *Config) bool {
		return (c.API.TLS.ClientsFile != "") == (c.API.TLS.ClientCA != "" && c.API.TokensFile == "" && c.API.OIDC.Issuer == "")
	}},

	oneOf("log.level", func(c *Config) string { return c.Log.Level }, "debug", "info", "warn", "error"),
	oneOf("log.format", func(c *Config) string { return c.Log.Format }, "text", "json"),

	{"profiles.listen", "empty, host:port, or :port on this machine alone", func(c *Config) bool { return c.Profiles.Listen == "" || address(c.Profiles.Listen, 0) }},
	{"tracing.endpoint", "empty, or a URL such as http://localhost:4318/v1/traces", func(c *Config) bool {
		return c.Tracing.Endpoint == "" || plainURL(c.Tracing.Endpoint)
	}},
	{"tracing.sample_ratio", "0 to 1", func(c *Config) bool { return 0 <= c.Tracing.SampleRatio && c.Tracing.SampleRatio <= 1 }},
}

// oneOf returns the rule of a setting with one of a few words.
func oneOf(key string, get func(c *Config) string, words ...string) rule {
	last := len(words) - 1
	allowed := strings.Join(words[:last], ", ") + " or " + words[last]
	return rule{key, allowed, func(c *Config) bool { return slices.Contains(words, get(c)) }}
}

// inEffect returns the rule that TLS is enabled where its other settings say how: connections, passwords included, would
// be in clear text.
func inEffect(key string, get func(c *Config) TLS) rule {
	return rule{key, "true where ca, cert, key, server_name or insecure_skip_verify beside it is given", func(c *Config) bool {
		t := get(c)
		return t.Enabled || t.CA+t.Cert+t.Key+t.ServerName == "" && !t.InsecureSkipVerify
	}}
}

// check reports the settings whose values are not allowed, without those that are judged by a setting that is wrong itself:
// broken ones, or others whose values are not allowed.
func (c *Config) check(broken []string) (findings Findings) {
	for _, r := range rules {
		if r.ok(c) || slices.Contains(broken, r.key) {
			continue
		}
		judges := func(key string) bool { return strings.Contains(r.allowed, key) }
		if !slices.ContainsFunc(broken, judges) {
			broken = append(broken, r.key)
			findings = append(findings, Finding{Key: r.key, Message: fmt.Sprintf("%s is not allowed: %s", show(c.field(r.key)), r.allowed)})
		}
	}
	return findings
}

func within[T ~int | ~int64](n, least, greatest T) bool { return least <= n && n <= greatest }

func notHost(name string) bool { return !hostName.MatchString(name) }

func addresses(list []string) bool {
	bad := func(a string) bool { return strings.HasPrefix(a, ":") || !address(a, 1) }
	return len(list) > 0 && !slices.ContainsFunc(list, bad)
}

// address reports whether text is host:port with a port from least on.
func address(text string, least int) bool {
	_, port, err := net.SplitHostPort(text)
	n, notNumber := strconv.Atoi(port)
	return err == nil && notNumber == nil && within(n, least, 65535)
}

// plainURL reports whether text is the URL of an HTTP service, without parts that would not be sent to it, such as a
// password or a query.
func plainURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
