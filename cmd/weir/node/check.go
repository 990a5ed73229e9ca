package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/reworded/brokers"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/doctor"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/group"
)

// checkTimeout bounds a whole check.
const checkTimeout = 30 * time.Second

// checkList prints the result of each check.
type checkList struct {
	out    io.Writer
	failed int
}

func (l *checkList) line(verdict, what, format string, args ...any) {
	fmt.Fprintf(l.out, "%-5s %-28s %s\n", verdict, what, fmt.Sprintf(format, args...))
}

func (l *checkList) ok(what, format string, args ...any)   { l.line("ok", what, format, args...) }
func (l *checkList) warn(what, format string, args ...any) { l.line("warn", what, format, args...) }
func (l *checkList) fail(what string, err error) {
	l.failed++
	l.line("FAIL", what, "%v", err)
}

// take prints the findings of the doctor.
func (l *checkList) take(findings doctor.Findings) {
	for _, f := range findings {
		switch f.Verdict {
		case doctor.OK:
			l.ok(f.Subject, "%s", f.Found)
		case doctor.Warn:
			l.warn(f.Subject, "%s", f.Found)
		case doctor.Fail:
			l.fail(f.Subject, errors.New(f.Found))
		}
	}
}

// Check tries everything that a process with these roles needs, and prints a line for each part. It fails if any check
// fails.
func Check(ctx context.Context, out io.Writer, cfg *config.Config, registry *features.Registry, roles Roles) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	list := &checkList{out: out}
	list.ok("settings", "namespace %s, %s", cfg.Namespace, spelling.Counted(cfg.Shards, "shard"))
	if roles.Processor && len(registry.Streams) == 0 {
		list.fail("features", errNoStreams)
	} else {
		list.ok("features", "%s", say.Summary(registry))
	}
	checkAccess(ctx, list, cfg.API)
	checkKafka(ctx, list, cfg, registry, roles)
	list.take(doctor.Tables(ctx, lookedUp(registry, roles.API)))
	if roles.Processor {
		if found, err := connect.CheckSchemas(ctx, cfg, registry); err != nil {
			list.fail("schema registry", err)
		} else {
			list.take(found)
		}
	}
	list.take(connect.CheckStore(ctx, cfg, roles.Processor, roles.API))
	if list.failed > 0 {
		return fmt.Errorf("%s failed", spelling.Counted(list.failed, "check"))
	}
	return nil
}

// checkAccess checks the files that say who may ask, and asks the issuer of tokens.
func checkAccess(ctx context.Context, list *checkList, cfg config.API) {
	a, err := newGuard(cfg, nil)
	if err != nil {
		list.fail("api", err)
		return
	}
	if what := a.summary(); what != "" {
		list.ok("api", "%s", what)
	}
	if a.issuer == nil {
		return
	}
	if err := a.issuer.Discover(ctx); err != nil {
		list.fail("issuer of tokens", brokers.Plainly(err))
	} else {
		list.ok("issuer of tokens", "answers")
	}
}

// checkKafka checks the brokers, the consumer group and the topics. Without topics of tables, an API does not need Kafka.
func checkKafka(ctx context.Context, list *checkList, cfg *config.Config, registry *features.Registry, roles Roles) {
	names := features.TableTopics(lookedUp(registry, roles.API))
	if roles.Processor {
		events, err := connect.TopicNames(registry, cfg.Kafka.DeadLetterTopic)
		if err != nil {
			list.fail("topics", err)
			return
		}
		names = append(names, events...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	if len(names) == 0 {
		return
	}
	client, err := connect.KafkaClient(cfg)
	if err != nil {
		list.fail("kafka", err)
		return
	}
	found, err := connect.FindTopics(ctx, client, names)
	missing, isMissing := errors.AsType[connect.MissingTopicsError](err)
	if err != nil && !isMissing {
		list.fail("kafka", fmt.Errorf("%s: %w", strings.Join(cfg.Kafka.Brokers, ","), err))
		return
	}
	list.ok("kafka", "%s", spelling.Counted(len(found.Brokers), "broker"))
	if roles.Processor {
		if err := group.MayJoin(ctx, client.Transport, client.Addr, cfg.Kafka.Group); err != nil {
			list.fail("group "+cfg.Kafka.Group, brokers.Plainly(err))
		} else {
			list.ok("group "+cfg.Kafka.Group, "may be joined")
		}
	}
	for _, topic := range found.Topics {
		if topic.Error == nil {
			list.ok("topic "+topic.Name, "%s", spelling.Counted(len(topic.Partitions), "partition"))
		}
	}
	if roles.Processor {
		checkWriting(ctx, list, client, found, append(registry.EnrichedTopics(), cfg.Kafka.DeadLetterTopic))
	}
	for _, name := range missing {
		if cfg.Kafka.CreateTopics {
			list.warn("topic "+name, "is missing; weir run will create it")
		} else {
			list.fail("topic "+name, connect.MissingTopicsError{name})
		}
	}
	for _, e := range registry.Enrichments {
		from, to := connect.PartitionsOf(found, e.Stream.Topic), connect.PartitionsOf(found, e.Topic)
		if from > 0 && to > 0 && from != to {
			list.warn("topic "+e.Topic, "has %s, and %s has %d: enriched events go by their keys, not to the partition of the same number",
				spelling.Counted(to, "partition"), e.Stream.Topic, from)
		}
	}
}

// checkWriting checks that the user may write to some topics, as far as they were found.
func checkWriting(ctx context.Context, list *checkList, client *kafka.Client, found *kafka.MetadataResponse, names []string) {
	names = slices.DeleteFunc(names, func(name string) bool { return connect.PartitionsOf(found, name) == 0 })
	if len(names) == 0 {
		return
	}
	refused, err := fetch.Unwritable(ctx, client, names)
	if err != nil {
		list.fail("kafka", brokers.Plainly(err))
	}
	for _, name := range refused {
		list.fail("topic "+name, errors.New("the user may not write to it: allow Write on it"))
	}
}
