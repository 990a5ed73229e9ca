package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/group"
	"github.com/weir-stream/weir/pipeline/retry"
)

// join returns a member of the group for some topics until the context ends. It returns earlier if other topics are to
// be read before these exist. Its error ends the processor.
func (p *Processor) join(ctx context.Context, topics []string) error {
	p.health.set("group", errNotMember)
	if !p.waitForTopics(ctx, topics) {
		return nil
	}
	commits := newCommitter(p.log)
	c := &consumer{p: p, commit: commits.commit}
	member := group.New(group.Config{
		Transport: p.cfg.Transport, Bootstrap: kafka.TCP(p.cfg.Brokers...),
		Group: p.cfg.Group, InstanceID: p.cfg.GroupInstanceID, Topics: topics, Release: c.release,
		SessionTimeout: p.cfg.SessionTimeout, RebalanceTimeout: p.cfg.RebalanceTimeout,
		HeartbeatInterval: p.cfg.HeartbeatInterval, Logger: p.log,
	})
	defer p.leave(member)
	defer commits.close(leaveTimeout)
	defer c.close()
	ctx, fail := context.WithCancelCause(ctx)
	var consuming sync.WaitGroup
	defer consuming.Wait()
	defer fail(nil)
	consuming.Go(func() {
		if err := c.run(ctx); err != nil {
			fail(err)
		}
	})
	if err := p.follow(ctx, member, topics, c, commits); err != nil {
		return err
	}
	fail(nil)
	consuming.Wait()
	return failure(ctx)
}

// follow processes the partitions of each generation of the group until the context ends. If other
// topics are to be read, it joins the next generation for them.
func (p *Processor) follow(ctx context.Context, member *group.Member, topics []string, c *consumer, commits *committer) error {
	joining := retry.Trouble{Log: p.log, What: "joining the consumer group"}
	for ctx.Err() == nil {
		g, err := member.Next(ctx)
		if _, fenced := errors.AsType[*group.FencedError](err); fenced {
			return err
		}
		if err != nil {
			if ctx.Err() == nil {
				if c.hasPartitions() {
					err = cannotJoin(err)
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
		topics = p.stay(ctx, g, topics)
		member.Subscribe(topics)
	}
	return nil
}

// stay waits until a generation is over, or other topics are to be read than it was joined for. It
// returns the topics to join the next one for.
func (p *Processor) stay(ctx context.Context, g *group.Generation, topics []string) []string {
	missing := retry.Trouble{Log: p.log, What: "finding the topics"}
	for {
		var again <-chan time.Time
		registry, replaced := p.definitions.current()
		if wanted := registry.Topics(); !slices.Equal(wanted, topics) {
			err := p.findTopics(ctx, registry)
			if err == nil {
				missing.Over()
				p.log.Info("joining the consumer group for other topics; the assigned partitions go on", "generation", g.ID, "topics", wanted)
				return wanted
			}
			p.health.set("group", cannotJoin(err))
			again = time.After(missing.Failed(err))
		} else {
			p.health.clear("group")
		}
		select {
		case <-g.Done():
			p.log.Info("the consumer group rebalances; the assigned partitions go on", "generation", g.ID)
			return topics
		case <-ctx.Done():
			return topics
		case <-replaced:
		case <-again:
		}
	}
}

// cannotJoin says why the group cannot be joined, while partitions are still processed.
func cannotJoin(why error) error {
	return degradedError{fmt.Errorf("the assigned partitions go on, but no others can be added: %w", why)}
}

// leave leaves the group, so that others take over at once.
func (p *Processor) leave(member *group.Member) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := member.Leave(ctx); err != nil {
		p.log.Warn("the consumer group was not notified; others take over after kafka.session_timeout", "error", err)
	}
}

// leaveTimeout bounds the last commits, and then the request to leave the group.
const leaveTimeout = 5 * time.Second

// waitForTopics waits until all topics exist: while one is missing, the group would assign no partitions at all. It
// returns false if other topics are to be read meanwhile.
func (p *Processor) waitForTopics(ctx context.Context, topics []string) bool {
	missing := retry.Trouble{Log: p.log, What: "finding the topics"}
	for {
		registry, replaced := p.definitions.current()
		if !slices.Equal(registry.Topics(), topics) {
			return false
		}
		err := p.findTopics(ctx, registry)
		if err == nil {
			missing.Over()
			return true
		}
		p.health.set("group", err)
		select {
		case <-time.After(missing.Failed(err)):
		case <-replaced:
		case <-ctx.Done():
			return false
		}
	}
}

// findTopics returns an error if a topic to be read or written is missing.
func (p *Processor) findTopics(ctx context.Context, registry *features.Registry) error {
	client := &kafka.Client{Addr: kafka.TCP(p.cfg.Brokers...), Transport: p.cfg.Transport, Timeout: 10 * time.Second}
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: slices.Concat(registry.Topics(), registry.EnrichedTopics())})
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
