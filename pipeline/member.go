package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
)

// join is a member of the group for some topics, until the context ends or
// others are to be read. What ends the processor goes to fail.
func (p *Processor) join(ctx context.Context, fail context.CancelCauseFunc, topics []string) error {
	ctx, leave := p.untilOtherTopics(ctx, topics)
	defer leave()
	p.health.set("group", errNotMember)
	registry, _ := p.definitions.present()
	if !p.waitForTopics(ctx, slices.Concat(topics, registry.EnrichedTopics())) {
		return nil
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: p.cfg.Group, Brokers: p.cfg.Brokers, Dialer: p.cfg.Dialer,
		Topics: topics,
		// Round robin spreads several topics of few partitions evenly.
		GroupBalancers:        []kafka.GroupBalancer{kafka.RoundRobinGroupBalancer{}, kafka.RangeGroupBalancer{}},
		WatchPartitionChanges: true,
		SessionTimeout:        p.cfg.SessionTimeout, RebalanceTimeout: p.cfg.RebalanceTimeout,
		HeartbeatInterval: p.cfg.HeartbeatInterval, JoinGroupBackoff: time.Second,
	})
	if err != nil {
		return fmt.Errorf("join group %q: %w", p.cfg.Group, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = group.Close() }) // ends the generation under way
	defer stop()
	joining := trouble{log: p.log, what: "joining the consumer group"}
	for ctx.Err() == nil {
		generation, err := group.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.health.set("group", err)
				wait(ctx, joining.failed(err))
			}
			continue
		}
		joining.over()
		generation.Start(func(ctx context.Context) {
			if err := p.generation(ctx, generation, topics); err != nil {
				fail(err)
			}
		})
	}
	// Close waits for the generation's flush and leaves the group.
	_ = group.Close()
	return nil
}

// waitForTopics waits until all topics are there: the group would be given no
// partitions at all while one is missing.
func (p *Processor) waitForTopics(ctx context.Context, topics []string) bool {
	client := &kafka.Client{Addr: kafka.TCP(p.cfg.Brokers...), Transport: p.cfg.Transport, Timeout: 10 * time.Second}
	missing := trouble{log: p.log, what: "finding the topics"}
	for {
		err := findTopics(ctx, client, topics)
		if err == nil {
			missing.over()
			return true
		}
		p.health.set("group", err)
		if !wait(ctx, missing.failed(err)) {
			return false
		}
	}
}

func findTopics(ctx context.Context, client *kafka.Client, topics []string) error {
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return err
	}
	for _, t := range found.Topics {
		if t.Error != nil {
			return fmt.Errorf("topic %q: %w", t.Name, t.Error)
		}
	}
	return nil
}
