package group

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// Generation is an assignment to a member until the group rebalances. Its partitions stay with the member until they
// are released.
type Generation struct {
	ID         int32
	Partitions []state.Partition // by topic and ID

	member    string
	topics    []string
	m         *Member
	over      context.Context // ends when the group rebalances or has evicted the member
	rebalance context.CancelFunc
	quit      context.CancelFunc // ends the heartbeats
	beats     sync.WaitGroup
}

// begin starts the heartbeats of the generation that was joined, whose assignment was made for the given numbers of
// partitions.
func (m *Member) begin(leads bool, counts map[string]int32) *Generation {
	g := &Generation{ID: m.generation, Partitions: sorted(m.owned), member: m.id, topics: m.cfg.Topics, m: m}
	var ctx context.Context
	ctx, g.quit = context.WithCancel(context.Background())
	g.over, g.rebalance = context.WithCancel(ctx)
	if len(m.leaving) > 0 {
		g.rebalance() // others wait for its partitions
	}
	g.beats.Go(func() { g.beat(ctx) })
	if leads {
		g.beats.Go(func() { g.watch(ctx, counts) })
	}
	return g
}

// Done is closed when the group rebalances: the caller must call Next.
func (g *Generation) Done() <-chan struct{} { return g.over.Done() }

// end ends the heartbeats.
func (g *Generation) end() {
	g.quit()
	g.beats.Wait()
}

// beat sends heartbeats, also while the caller finishes its work after a rebalance has begun.
func (g *Generation) beat(ctx context.Context) {
	ticker := time.NewTicker(g.m.cfg.HeartbeatInterval)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch err := g.heartbeat(ctx); {
		case err == nil:
			last = time.Now()
		case ctx.Err() != nil:
			return
		case errors.Is(err, kafka.RebalanceInProgress):
			last = time.Now()
			g.rebalance()
		case isRefusal(err):
			g.m.cfg.Logger.Warn("the consumer group refuses this member; joining again", "error", err)
			g.rebalance()
			return
		case time.Since(last) > g.m.cfg.SessionTimeout:
			g.m.cfg.Logger.Warn("no heartbeat reaches the consumer group; joining again", "error", err)
			g.rebalance()
			return
		default:
			// The group may have moved to another broker, and continues there.
			g.m.coordinator.Store(fetch.AnyBroker)
		}
	}
}

// isRefusal distinguishes an answer of the coordinator from a failure to reach it.
func isRefusal(err error) bool {
	code, ok := errors.AsType[kafka.Error](err)
	return ok && code != kafka.NotCoordinatorForGroup && code != kafka.GroupCoordinatorNotAvailable && code != kafka.GroupLoadInProgress
}

func (g *Generation) heartbeat(ctx context.Context) error {
	request := kmsg.NewPtrHeartbeatRequest()
	request.Group, request.MemberID, request.Generation, request.InstanceID = g.m.cfg.Group, g.member, g.ID, g.m.instance()
	response, err := do[*kmsg.HeartbeatResponse](ctx, g.m, min(requestTimeout, g.m.cfg.SessionTimeout), request)
	if err != nil {
		return err
	}
	return g.m.refusal("stay in", response.ErrorCode)
}

// watchEvery is how often the leader looks for new partitions.
const watchEvery = 5 * time.Second

// watch rebalances the group when topics have other numbers of partitions than the assignment was made for.
func (g *Generation) watch(ctx context.Context, counts map[string]int32) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		// Not at once: for a moment brokers may report different numbers.
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, err := g.m.partitions(ctx, g.topics)
		if err == nil && slices.ContainsFunc(g.topics, func(topic string) bool { return now[topic] != counts[topic] }) {
			g.rebalance()
			return
		}
	}
}

// Commit commits the applied offsets to Kafka. It is refused while the group forms its next
// generation.
func (g *Generation) Commit(ctx context.Context, offsets map[state.Partition]int64) error {
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Group, request.MemberID, request.Generation, request.InstanceID = g.m.cfg.Group, g.member, g.ID, g.m.instance()
	var topics fetch.ByTopic[kmsg.OffsetCommitRequestTopic]
	for p, offset := range offsets {
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Partition, partition.Offset = p.ID, offset
		t := topics.Of(p.Topic, kmsg.NewOffsetCommitRequestTopic)
		t.Topic, t.Partitions = p.Topic, append(t.Partitions, partition)
	}
	request.Topics = topics.Topics
	response, err := do[*kmsg.OffsetCommitResponse](ctx, g.m, requestTimeout, request)
	if err != nil {
		return err
	}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if err := g.m.refusal("commit offsets of", p.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
