package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/pipeline/group"
	"github.com/weir-stream/weir/pipeline/retry"
)

// join is a member of the group for some topics, until the context ends or
// others are to be read. Its error ends the processor.
func (p *Processor) join(ctx context.Context, topics []string) error {
	ctx, leave := p.untilOtherTopics(ctx, topics)
	defer leave()
	p.health.set("group", errNotMember)
	registry, _ := p.definitions.present()
	if !p.waitForTopics(ctx, slices.Concat(topics, registry.EnrichedTopics())) {
		return nil
	}
	commits := newCommitter(p.log)
	c := &consumer{p: p, topics: topics, commit: commits.commit}
	member := group.New(group.Config{
		Transport: p.cfg.Transport, Bootstrap: kafka.TCP(p.cfg.Brokers...),
		Group: p.cfg.Group, InstanceID: p.cfg.GroupInstanceID, Topics: topics, Release: c.release,
		SessionTimeout: p.cfg.SessionTimeout, RebalanceTimeout: p.cfg.RebalanceTimeout,
		HeartbeatInterval: p.cfg.HeartbeatInterval, Logger: p.log,
	})
	defer p.leave(member)
	defer commits.close()
	defer c.close()
	ctx, fail := context.WithCancelCause(ctx)
	var carrying sync.WaitGroup
	defer carrying.Wait()
	defer fail(nil)
	carrying.Go(func() {
		if err := c.run(ctx); err != nil {
			fail(err)
		}
	})
	if err := p.follow(ctx, member, c, commits); err != nil {
		return err
	}
	fail(nil)
	carrying.Wait()
	return failure(ctx)
}

// follow carries what each generation of the group gives this member, until the
// context ends.
func (p *Processor) follow(ctx context.Context, member *group.Member, c *consumer, commits *committer) error {
	joining := retry.Trouble{Log: p.log, What: "joining the consumer group"}
	for ctx.Err() == nil {
		g, err := member.Next(ctx)
		if _, fenced := errors.AsType[*group.FencedError](err); fenced {
			return err
		}
		if err != nil {
			if ctx.Err() == nil {
				if c.carries() {
					err = &awayError{err}
				}
				p.health.set("group", err)
				retry.Wait(ctx, joining.Failed(err))
			}
			continue
		}
		joining.Over()
		commits.generation.Store(g)
		p.log.Info("partitions assigned", "generation", g.ID, "partitions", len(g.Partitions))
		c.accept(g.Partitions)
		p.health.clear("group")
		select {
		case <-g.Done():
			p.log.Info("the consumer group rebalances; the partitions at hand go on", "generation", g.ID)
		case <-ctx.Done():
		}
	}
	return nil
}

// awayError says that the group cannot be joined while partitions are carried.
type awayError struct{ err error }

func (e *awayError) Error() string {
	return fmt.Sprintf("the partitions at hand go on, but no others can be taken: %v", e.err)
}

func (e *awayError) Unwrap() error { return e.err }
func (*awayError) Degraded() bool  { return true }

// leave leaves the group, so that others take over at once.
func (p *Processor) leave(member *group.Member) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := member.Leave(ctx); err != nil {
		p.log.Warn("the consumer group was not told; others take over after kafka.session_timeout", "error", err)
	}
}

// leaveTimeout is for the broker to hear that a member leaves.
const leaveTimeout = 5 * time.Second

// waitForTopics waits until all topics are there: the group would be given no
// partitions at all while one is missing.
func (p *Processor) waitForTopics(ctx context.Context, topics []string) bool {
	client := &kafka.Client{Addr: kafka.TCP(p.cfg.Brokers...), Transport: p.cfg.Transport, Timeout: 10 * time.Second}
	missing := retry.Trouble{Log: p.log, What: "finding the topics"}
	for {
		err := findTopics(ctx, client, topics)
		if err == nil {
			missing.Over()
			return true
		}
		p.health.set("group", err)
		if !retry.Wait(ctx, missing.Failed(err)) {
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
