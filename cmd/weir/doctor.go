package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	redisconn "github.com/weir-stream/weir/cmd/weir/connect/redis"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/doctor"
)

// doctorTimeout bounds the checks of Redis together, and those of everything else: a Redis that does not answer must not
// use up the time for Kafka.
const doctorTimeout = 30 * time.Second

func newDoctorCommand() *cobra.Command {
	var (
		out    output
		copies time.Duration
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check Redis, Kafka and the definitions, and say what to do",
		Long: `Check the definitions, each Redis server (version, role, persistence, eviction,
replicas, clock), the namespace, which consumer groups apply which definitions to it
and its longest keys, the replicas that questions are read from, the files of tables,
the latest schemas of topics whose records name some, and each topic (settings,
retention against the longest window and the copies of Redis that may be restored).
It writes nothing, and fails if a check fails.`,
		Example: `  weir doctor --config config/weir.yaml
  weir doctor --config config/weir.yaml --copies 72h --json`,
		Args: cobra.NoArgs,
	}
	s := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := s.load(cmd)
		if err != nil {
			return err
		}
		findings := examine(cmd.Context(), cfg, copies, doctorTimeout)
		if err := out.print(cmd, findings); err != nil {
			return err
		}
		if n := findings.Count(doctor.Fail); n > 0 {
			return fmt.Errorf("%s FAIL", spelling.Counted(n, "finding"))
		}
		return nil
	}
	out.flag(cmd)
	cmd.Flags().DurationVar(&copies, "copies", 24*time.Hour, "age of the oldest copy of Redis that you may restore")
	return cmd
}

// examine runs all checks, for as long as two timeouts. What cannot be checked hides no other finding.
func examine(ctx context.Context, cfg *config.Config, copies, timeout time.Duration) doctor.Findings {
	registry, findings := doctor.Definitions(cfg.Features)
	findings = append(findings, examineStore(ctx, cfg, registry, timeout)...)
	if registry == nil {
		return findings // the topics are unknown
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	findings = append(findings, doctor.Tables(ctx, registry.Tables)...)
	schemas, err := connect.CheckSchemas(ctx, cfg, registry)
	if err != nil {
		schemas = failed("schema registry", err)
	}
	findings = append(findings, schemas...)
	if _, err := connect.TopicNames(registry, cfg.Kafka.DeadLetterTopic); err != nil {
		findings = append(findings, failed("topics", err)...)
	}
	client, err := connect.KafkaClient(cfg)
	if err != nil {
		return append(findings, failed("kafka", err)...)
	}
	return append(findings, doctor.Kafka(ctx, client, doctor.Topics{
		Registry: registry, DeadLetters: cfg.Kafka.DeadLetterTopic, Copies: copies,
		MaxRecordBytes: int64(cfg.Kafka.MaxRecordBytes), Create: cfg.Kafka.CreateTopics,
	})...)
}

// examineStore checks the store, and what is on it of the definitions, which may be nil.
func examineStore(ctx context.Context, cfg *config.Config, registry *features.Registry, timeout time.Duration) doctor.Findings {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if cfg.Store.Type != "redis" {
		return examineOther(ctx, cfg, registry)
	}
	redis, err := redisconn.Open(cfg, true, noLog)
	if err != nil {
		return failed("redis", err)
	}
	defer redis.Close()
	servers := doctor.Redis(ctx, redis.Client, redis.Store(), cfg.Redis.AllowEviction)
	findings := servers
	if redis.FromReplicas() {
		findings = append(findings, doctor.Replicas(ctx, redis.Store())...)
	}
	if registry != nil && len(servers) > 1 { // otherwise none answers
		findings = append(findings, doctor.Rivals(ctx, redis.Store(), time.Now())...)
		findings = append(findings, doctor.Greatest(ctx, redis.Store(), registry)...)
	}
	return findings
}

func failed(subject string, err error) doctor.Findings {
	return doctor.Findings{{Verdict: doctor.Fail, Subject: subject, Found: err.Error()}}
}

// examineOther checks a store other than Redis.
func examineOther(ctx context.Context, cfg *config.Config, registry *features.Registry) doctor.Findings {
	findings := connect.CheckStore(ctx, cfg, true, true)
	if registry == nil || findings.Count(doctor.Fail) > 0 {
		return findings
	}
	store, err := adopted(ctx, cfg, openStore)
	if err != nil {
		return append(findings, failed(cfg.Store.Type, err)...)
	}
	defer store.Close()
	return append(findings, doctor.Greatest(ctx, store, registry)...)
}
