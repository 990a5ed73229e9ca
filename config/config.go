// Package config holds the settings of the process. They come from a YAML file, from WEIR_…
// environment variables and from flags; a later source overrides an earlier one.
//
// Names, defaults and meanings are those of weir.yaml, which is built in.
package config

import (
	_ "embed"
	"runtime"
	"time"
)

// reference is the annotated file with every setting at its default.
//
//go:embed weir.yaml
var reference []byte

// Config are all settings. The tags are the keys in the file; weir.yaml has
// the defaults and says what each setting does.
type Config struct {
	Namespace string    `key:"namespace"` // names the state in the store
	Shards    int       `key:"shards"`    // state shards of a new namespace
	Features  []string  `key:"features"`  // files and folders of definitions
	Kafka     Kafka     `key:"kafka"`
	Registry  Registry  `key:"registry"`
	Redis     Redis     `key:"redis"`
	Ignite    Ignite    `key:"ignite"`
	Store     Store     `key:"store"`
	Processor Processor `key:"processor"`
	Backfill  Backfill  `key:"backfill"`
	API       API       `key:"api"`
	Log       Log       `key:"log"`
	Tracing   Tracing   `key:"tracing"`
	Profiles  Profiles  `key:"profiles"`
}

// Kafka says where events come from and how they are read.
type Kafka struct {
	Brokers           []string      `key:"brokers"` // host:port
	Group             string        `key:"group"`
	GroupInstanceID   string        `key:"group_instance_id"`
	ClientID          string        `key:"client_id"`
	Start             string        `key:"start"`     // earliest or latest, for partitions never seen
	Isolation         string        `key:"isolation"` // read_committed or read_uncommitted
	DeadLetterTopic   string        `key:"dead_letter_topic"`
	OnDataLoss        string        `key:"on_data_loss"`     // stop or continue
	OnBrokenBatch     string        `key:"on_broken_batch"`  // set_aside or stop
	OnDamagedBatch    string        `key:"on_damaged_batch"` // stop or set_aside
	MaxRecordBytes    Bytes         `key:"max_record_bytes"`
	CreateTopics      bool          `key:"create_topics"`
	TopicPartitions   int           `key:"topic_partitions"`  // -1: the brokers' default
	TopicReplication  int           `key:"topic_replication"` // -1: the brokers' default
	SessionTimeout    time.Duration `key:"session_timeout"`
	RebalanceTimeout  time.Duration `key:"rebalance_timeout"`
	HeartbeatInterval time.Duration `key:"heartbeat_interval"`
	Fetch             Fetch         `key:"fetch"`
	TLS               TLS           `key:"tls"`
	SASL              SASL          `key:"sasl"`
}

// Fetch bounds the response to one request to a broker.
type Fetch struct {
	MaxBytes          Bytes `key:"max_bytes"`
	PartitionMaxBytes Bytes `key:"partition_max_bytes"`
}

// TLS says how connections are encrypted. CA, Cert and Key are PEM files.
type TLS struct {
	Enabled            bool   `key:"enabled"`
	CA                 string `key:"ca"`
	Cert               string `key:"cert"`
	Key                string `key:"key"`
	ServerName         string `key:"server_name"`
	InsecureSkipVerify bool   `key:"insecure_skip_verify"`
}

// SASL says how to authenticate with the brokers.
type SASL struct {
	Mechanism    string   `key:"mechanism"` // none, plain, scram-sha-256, scram-sha-512, oauthbearer, aws-msk-iam or gssapi
	Username     string   `key:"username"`
	Password     Secret   `key:"password"` // after Load, also what PasswordFile held then
	PasswordFile string   `key:"password_file"`
	OAuth        OAuth    `key:"oauth"`
	Kerberos     Kerberos `key:"kerberos"`
}

// Kerberos says how to log in with gssapi.
type Kerberos struct {
	Service string `key:"service"` // of the brokers' principals
	Realm   string `key:"realm"`   // of the user; empty for the default of Config
	Keytab  string `key:"keytab"`
	Config  string `key:"config"` // krb5.conf
}

// OAuth says where the tokens of oauthbearer come from: an issuer or a file.
type OAuth struct {
	TokenURL         string   `key:"token_url"`
	ClientID         string   `key:"client_id"`
	ClientSecret     Secret   `key:"client_secret"` // after Load, also what ClientSecretFile held then
	ClientSecretFile string   `key:"client_secret_file"`
	Scopes           []string `key:"scopes"`
	CA               string   `key:"ca"` // PEM file
	TokenFile        string   `key:"token_file"`
	Extensions       []string `key:"extensions"` // name=value
}

// Registry says where to find the schemas that records name.
type Registry struct {
	URL          string        `key:"url"` // empty for none
	Username     string        `key:"username"`
	Password     Secret        `key:"password"` // after Load, also what PasswordFile held then
	PasswordFile string        `key:"password_file"`
	Token        Secret        `key:"token"` // after Load, also what TokenFile held then
	TokenFile    string        `key:"token_file"`
	Timeout      time.Duration `key:"timeout"` // of one request
	TLS          TLS           `key:"tls"`
}

// Redis says where the state is kept if store.type is redis.
type Redis struct {
	Mode                 string        `key:"mode"`      // single, sentinel or cluster
	Addresses            []string      `key:"addresses"` // host:port
	MasterName           string        `key:"master_name"`
	ReadFrom             string        `key:"read_from"` // master or replica
	Replicas             []string      `key:"replicas"`  // host:port; for single only
	MaxStaleness         time.Duration `key:"max_staleness"`
	AllowEviction        bool          `key:"allow_eviction"` // servers may delete state when their memory is full
	Username             string        `key:"username"`
	Password             Secret        `key:"password"` // after Load, also what PasswordFile holds
	PasswordFile         string        `key:"password_file"`
	ElastiCache          ElastiCache   `key:"elasticache"`
	Azure                Azure         `key:"azure"`
	SentinelUsername     string        `key:"sentinel_username"`
	SentinelPassword     Secret        `key:"sentinel_password"` // after Load, also what its file holds
	SentinelPasswordFile string        `key:"sentinel_password_file"`
	DB                   int           `key:"db"`
	PoolSize             int           `key:"pool_size"` // for each server; 0 is ten for each CPU
	DialTimeout          time.Duration `key:"dial_timeout"`
	ReadTimeout          time.Duration `key:"read_timeout"`
	WriteTimeout         time.Duration `key:"write_timeout"`
	TLS                  TLS           `key:"tls"`
}

// ElastiCache says for which cache of Amazon ElastiCache to log in with IAM.
type ElastiCache struct {
	Cache      string `key:"cache"`  // its name; empty for a login with a password
	Region     string `key:"region"` // empty for that of AWS' own tools
	Serverless bool   `key:"serverless"`
}

// Azure says which identity of Microsoft Entra logs in at Redis.
type Azure struct {
	Identity string `key:"identity"`  // workload or managed; empty for a login with a password
	ClientID string `key:"client_id"` // empty for the one of the pod, or of the machine
}

// Ignite says where the state is kept if store.type is ignite.
type Ignite struct {
	Addresses      []string      `key:"addresses"` // host:port
	Username       string        `key:"username"`
	Password       Secret        `key:"password"` // after Load, also what PasswordFile held then
	PasswordFile   string        `key:"password_file"`
	Backups        int           `key:"backups"`     // copies of a new namespace's state beside the first
	DataRegion     string        `key:"data_region"` // of a new namespace; empty for the default one
	DialTimeout    time.Duration `key:"dial_timeout"`
	RequestTimeout time.Duration `key:"request_timeout"`
	TLS            TLS           `key:"tls"`
}

// Store says how state is kept.
type Store struct {
	Type          string        `key:"type"` // redis or ignite
	HashEntities  HashEntities  `key:"hash_entities"`
	Seal          Seal          `key:"seal"`
	ExpirySlack   time.Duration `key:"expiry_slack"`
	CallMutations int           `key:"call_mutations"` // greatest number in one script call
}

// HashEntities says which key hashes the values of entities.
type HashEntities struct {
	KeyFile string `key:"key_file"`
}

// Seal says which key proves what Weir writes to topics.
type Seal struct {
	KeyFile string `key:"key_file"`
}

// Processor says how events are applied.
type Processor struct {
	Workers         int           `key:"workers"` // 0 is one for each CPU; see WorkerCount
	Freshness       time.Duration `key:"freshness"`
	CommitInterval  time.Duration `key:"commit_interval"`
	ShutdownTimeout time.Duration `key:"shutdown_timeout"`
	Batch           BatchLimits   `key:"batch"`
}

// BatchLimits bounds the writes to Redis in one batch.
type BatchLimits struct {
	MaxEvents int   `key:"max_events"`
	MaxBytes  Bytes `key:"max_bytes"`
}

// Backfill says how new features are filled with records that were applied before.
type Backfill struct {
	Mode string  `key:"mode"` // auto or off
	Rate float64 `key:"rate"` // share of a core
}

// Profiles says where the process's profiles are served.
type Profiles struct {
	Listen string `key:"listen"` // host:port; empty is nowhere, an empty host this machine alone
}

// API says how questions are answered.
type API struct {
	Listen          string        `key:"listen"` // host:port; an empty host is every interface
	MaxBodyBytes    Bytes         `key:"max_body_bytes"`
	MaxValues       int           `key:"max_values"` // features or members, with multi-hop entities, times entities of one request
	MaxAnswerBytes  Bytes         `key:"max_answer_bytes"`
	Timeout         time.Duration `key:"timeout"`
	ShutdownTimeout time.Duration `key:"shutdown_timeout"`
	MaxConcurrent   int           `key:"max_concurrent"` // questions at once
	MaxInFlight     Bytes         `key:"max_inflight_bytes"`
	TokensFile      string        `key:"tokens_file"`
	Hosts           []string      `key:"hosts"` // names of the server, besides its own
	OpenMetrics     bool          `key:"open_metrics"`
	OIDC            OIDC          `key:"oidc"`
	TLS             ServerTLS     `key:"tls"`
}

// OIDC says whose JSON web tokens the API accepts.
type OIDC struct {
	Issuer      string `key:"issuer"`   // URL of an OpenID Connect provider; empty for none
	Audience    string `key:"audience"` // the audience that tokens must have
	ScopeClaim  string `key:"scope_claim"`
	ScopePrefix string `key:"scope_prefix"`
	CA          string `key:"ca"` // PEM file
}

// ServerTLS says how the API authenticates itself and its clients. All but ClientsFile are PEM files.
type ServerTLS struct {
	Cert     string `key:"cert"`
	Key      string `key:"key"`
	ClientCA string `key:"client_ca"`
	// ClientsFile names clients by their certificates' common names, with scopes.
	ClientsFile string `key:"clients_file"`
}

// Log configures logging.
type Log struct {
	Level  string `key:"level"`  // debug, info, warn or error
	Format string `key:"format"` // text or json
}

// Tracing says where spans are sent, and which.
type Tracing struct {
	Endpoint    string  `key:"endpoint"`     // URL of a collector; empty for no tracing
	SampleRatio float64 `key:"sample_ratio"` // of the traces that begin here, 0 to 1
}

// WorkerCount returns the number of goroutines that map events, at least 1.
func (p Processor) WorkerCount() int {
	if p.Workers == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return p.Workers
}
