package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// Config describes which group to join, and how. Every field but InstanceID is required.
type Config struct {
	Transport kafka.RoundTripper
	Bootstrap net.Addr
	Group     string
	// InstanceID makes the member static: one name for each process, the same
	// after a restart.
	InstanceID string
	Topics     []string
	// Release is called by Next with partitions that go to other members. It stops them, and returns when nothing is
	// under way for them. It must return within half of SessionTimeout, because no heartbeat is sent meanwhile.
	Release func([]state.Partition)

	SessionTimeout    time.Duration // without heartbeats, after which the broker evicts the member
	RebalanceTimeout  time.Duration // for all members to call Next after a rebalance has begun
	HeartbeatInterval time.Duration
	Logger            *slog.Logger
}

// FencedError says that another process has joined with the same instance ID.
type FencedError struct{ Group, InstanceID string }

func (e *FencedError) Error() string {
	return fmt.Sprintf("another process has joined group %q with kafka.group_instance_id %q: give each process an ID of its own, "+
		"such as the name of its pod", e.Group, e.InstanceID)
}

// Unwrap returns the broker's error.
func (e *FencedError) Unwrap() error { return kafka.FencedInstanceID }

// Member is one member of a group. It is not safe for concurrent use.
type Member struct {
	cfg      Config
	requests *fetch.Requests
	balancer kgo.GroupBalancer

	coordinator atomic.Int32 // fetch.AnyBroker while unknown
	id          string       // empty until the broker assigns one
	current     *Generation
	owned       map[string][]int32 // of the last generation joined
	leaving     []state.Partition  // revoked by it, and not released yet
	generation  int32
}

// New returns a member that has not joined yet.
func New(cfg Config) *Member {
	m := &Member{
		cfg: cfg, requests: fetch.NewRequests(cfg.Transport, cfg.Bootstrap), balancer: kgo.CooperativeStickyBalancer(),
		generation: -1,
	}
	m.coordinator.Store(fetch.AnyBroker)
	return m
}

const (
	requestTimeout = 10 * time.Second
	// joinSlack is how much longer to wait for a join than the group may take.
	joinSlack = 5 * time.Second
)

// Next joins the group, even if a generation is not over, and returns the next generation. The partitions of the last
// one stay with the member meanwhile, except those that Release is called with. Its error is a *FencedError, which is
// permanent; after any other error it may be called again.
func (m *Member) Next(ctx context.Context) (*Generation, error) {
	m.stop()
	for {
		g, err := m.join(ctx)
		if err == nil {
			m.current = g
			return g, nil
		}
		if !m.again(err) {
			return nil, err
		}
	}
}

// Subscribe makes the member read other topics from the next call of Next on, which joins the group
// for them at once. Partitions of topics that it no longer reads are released then.
func (m *Member) Subscribe(topics []string) { m.cfg.Topics = topics }

// again updates the member after an error, and reports whether to join again at once.
func (m *Member) again(err error) bool {
	switch {
	case errors.Is(err, kafka.MemberIDRequired), errors.Is(err, kafka.RebalanceInProgress), errors.Is(err, errOtherTopics):
		return true
	case errors.Is(err, kafka.UnknownMemberId), errors.Is(err, kafka.IllegalGeneration):
		// Its partitions may belong to others now.
		known := m.generation >= 0 || m.id != ""
		if errors.Is(err, kafka.UnknownMemberId) {
			m.id = ""
		}
		m.lose()
		return known
	case errors.Is(err, kafka.FencedInstanceID):
		return false
	}
	m.coordinator.Store(fetch.AnyBroker)
	return false
}

// lose releases all partitions, because the group has continued without the member.
func (m *Member) lose() {
	m.leaving = append(m.leaving, sorted(m.owned)...)
	m.release()
	m.owned, m.generation = nil, -1
}

// release releases the revoked partitions.
func (m *Member) release() {
	if len(m.leaving) > 0 {
		m.cfg.Release(m.leaving)
		m.leaving = nil
	}
}

// join joins and gets an assignment, once.
func (m *Member) join(ctx context.Context) (*Generation, error) {
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.MemberID, request.InstanceID = m.cfg.Group, m.id, m.instance()
	request.SessionTimeoutMillis = int32(m.cfg.SessionTimeout.Milliseconds())
	request.RebalanceTimeoutMillis = int32(m.cfg.RebalanceTimeout.Milliseconds())
	request.ProtocolType = "consumer"
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = m.balancer.ProtocolName()
	protocol.Metadata = m.balancer.JoinGroupMetadata(slices.Sorted(slices.Values(m.cfg.Topics)), copyOf(m.owned), m.generation)
	request.Protocols = append(request.Protocols, protocol)
	response, err := do[*kmsg.JoinGroupResponse](ctx, m, m.cfg.RebalanceTimeout+m.cfg.SessionTimeout+joinSlack, request)
	if err != nil {
		return nil, err
	}
	if response.MemberID != "" {
		m.id = response.MemberID
	}
	if err := m.refusal("join", response.ErrorCode); err != nil {
		return nil, err
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	leads := response.LeaderID == response.MemberID
	if leads && !response.SkipAssignment {
		if sync.GroupAssignment, err = m.share(ctx, response.Members); err != nil {
			return nil, err
		}
	}
	// Not earlier: until all have joined, no other member could take them.
	m.release()
	return m.sync(ctx, sync, response, leads)
}

// sync gets the member's assignment, which the leader sends through the broker.
func (m *Member) sync(ctx context.Context, request *kmsg.SyncGroupRequest, joined *kmsg.JoinGroupResponse, leads bool) (*Generation, error) {
	request.Group, request.MemberID, request.InstanceID = m.cfg.Group, m.id, m.instance()
	request.Generation, request.ProtocolType, request.Protocol = joined.Generation, joined.ProtocolType, joined.Protocol
	response, err := do[*kmsg.SyncGroupResponse](ctx, m, m.cfg.RebalanceTimeout+joinSlack, request)
	if err != nil {
		return nil, err
	}
	if err := m.refusal("sync with", response.ErrorCode); err != nil {
		return nil, err
	}
	owned, counts, err := parseAssignment(response.MemberAssignment)
	if err != nil {
		return nil, fmt.Errorf("group %q: read the assignment: %w", m.cfg.Group, err)
	}
	m.leaving = without(m.owned, owned)
	m.owned, m.generation = owned, joined.Generation
	if sortedList(slices.Collect(maps.Keys(counts))) != m.topics() {
		return nil, errOtherTopics
	}
	return m.begin(leads, counts), nil
}

// share divides the partitions of all topics among the members.
func (m *Member) share(ctx context.Context, members []kmsg.JoinGroupResponseMember) ([]kmsg.SyncGroupRequestGroupAssignment, error) {
	slices.SortFunc(members, func(a, b kmsg.JoinGroupResponseMember) int {
		return cmp.Or(cmp.Compare(value(a.InstanceID), value(b.InstanceID)), cmp.Compare(a.MemberID, b.MemberID))
	})
	balancer, topics, err := m.balancer.MemberBalancer(members)
	if err != nil {
		return nil, fmt.Errorf("group %q: read the members' topics: %w", m.cfg.Group, err)
	}
	counts, err := m.partitions(ctx, slices.Sorted(maps.Keys(topics)))
	if err != nil {
		return nil, err
	}
	careful, ok := balancer.(kgo.GroupMemberBalancerOrError)
	if !ok {
		return nil, fmt.Errorf("group %q: %T cannot report errors", m.cfg.Group, balancer)
	}
	plan, err := careful.BalanceOrError(counts)
	if err != nil {
		return nil, fmt.Errorf("group %q: assign the partitions: %w", m.cfg.Group, err)
	}
	return withTopics(plan.IntoSyncAssignment(), members, counts)
}

// partitions counts the partitions of topics; missing topics have none.
func (m *Member) partitions(ctx context.Context, topics []string) (map[string]int32, error) {
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		request.Topics = append(request.Topics, topic)
	}
	response, err := m.requests.Do(ctx, requestTimeout, fetch.AnyBroker, request)
	if err != nil {
		return nil, fmt.Errorf("group %q: count the partitions: %w", m.cfg.Group, err)
	}
	counts := make(map[string]int32, len(topics))
	for _, topic := range response.(*kmsg.MetadataResponse).Topics {
		if topic.Topic != nil && len(topic.Partitions) > 0 {
			counts[*topic.Topic] = int32(len(topic.Partitions))
		}
	}
	return counts, nil
}

// findCoordinator returns the group's coordinator.
func (m *Member) findCoordinator(ctx context.Context) (int32, error) {
	if known := m.coordinator.Load(); known != fetch.AnyBroker {
		return known, nil
	}
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorKey = m.cfg.Group
	response, err := m.requests.Do(ctx, requestTimeout, fetch.AnyBroker, request)
	if err != nil {
		return 0, fmt.Errorf("group %q: %w", m.cfg.Group, err)
	}
	found := response.(*kmsg.FindCoordinatorResponse)
	if err := m.refusal("find the coordinator of", found.ErrorCode); err != nil {
		return 0, err
	}
	m.coordinator.Store(found.NodeID)
	return found.NodeID, nil
}

// Leave ends the membership. A static member stays in the group, for its return.
func (m *Member) Leave(ctx context.Context) error {
	m.stop()
	if m.id == "" || m.cfg.InstanceID != "" {
		return nil
	}
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group, request.MemberID = m.cfg.Group, m.id
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID = m.id
	request.Members = append(request.Members, member)
	response, err := do[*kmsg.LeaveGroupResponse](ctx, m, requestTimeout, request)
	m.id, m.owned, m.leaving, m.generation = "", nil, nil, -1
	if err != nil {
		return err
	}
	return m.refusal("leave", response.ErrorCode)
}

// stop ends the heartbeats of the current generation.
func (m *Member) stop() {
	if m.current != nil {
		m.current.end()
		m.current = nil
	}
}

// refusal returns the error for a response's code, nil if there is none.
func (m *Member) refusal(what string, code int16) error {
	switch {
	case code == 0:
		return nil
	case kafka.Error(code) == kafka.FencedInstanceID:
		return &FencedError{m.cfg.Group, m.cfg.InstanceID}
	case kafka.Error(code) == kafka.GroupCoordinatorNotAvailable:
		return &noCoordinatorError{fmt.Errorf("%s group %q: %w", what, m.cfg.Group, kafka.Error(code))}
	case kafka.Error(code) == kafka.InconsistentGroupProtocol:
		return fmt.Errorf("%s group %q: its members are of another program or version, which assigns partitions differently: "+
			"end them, or set kafka.group to another name: %w", what, m.cfg.Group, kafka.Error(code))
	}
	return fmt.Errorf("%s group %q: %w", what, m.cfg.Group, kafka.Error(code))
}

// noCoordinatorError is the error while a group has no coordinator: the first group of a cluster has none for a second, since
// its topic of offsets is created for it.
type noCoordinatorError struct{ error }

func (e *noCoordinatorError) Unwrap() error { return e.error }

// Passing reports that there will be one.
func (*noCoordinatorError) Passing() bool { return true }

func (m *Member) instance() *string {
	if m.cfg.InstanceID == "" {
		return nil
	}
	return &m.cfg.InstanceID
}

// do sends a request to the coordinator.
func do[R kmsg.Response](ctx context.Context, m *Member, timeout time.Duration, request kmsg.Request) (r R, err error) {
	coordinator, err := m.findCoordinator(ctx)
	if err != nil {
		return r, err
	}
	response, err := m.requests.Do(ctx, timeout, coordinator, request)
	if err != nil {
		return r, fmt.Errorf("group %q: %w", m.cfg.Group, err)
	}
	return response.(R), nil
}

func copyOf(owned map[string][]int32) map[string][]int32 {
	all := make(map[string][]int32, len(owned))
	for topic, partitions := range owned {
		all[topic] = slices.Sorted(slices.Values(partitions))
	}
	return all
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
