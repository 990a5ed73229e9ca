package group

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/state"
)

// A static member that returns is assigned its earlier partitions, even if it now reads other topics: the broker does
// not compare them. So an assignment names the topics that it was made for; a member that reads other topics joins once
// more. It then states what it owns, which the broker takes for a change, and the group rebalances. An assignment also
// has the number of partitions of its topics, because the leader must notice a partition that is added while the
// assignment is made.

// errOtherTopics is the error for an assignment with topics that the member no longer reads, or without topics that it
// reads.
var errOtherTopics = errors.New("the assignment was made for other topics")

// topics returns the topics that the member reads, in the form of assignments.
func (m *Member) topics() string { return sortedList(m.cfg.Topics) }

func sortedList(topics []string) string {
	return strings.Join(slices.Sorted(slices.Values(topics)), ",")
}

// withTopics adds to each member's assignment the topics that it reads, with the number of their partitions.
func withTopics(shares []kmsg.SyncGroupRequestGroupAssignment, members []kmsg.JoinGroupResponseMember, counts map[string]int32) ([]kmsg.SyncGroupRequestGroupAssignment, error) {
	topics := make(map[string][]string, len(members))
	for _, member := range members {
		var subscription kmsg.ConsumerMemberMetadata
		if err := subscription.ReadFrom(member.ProtocolMetadata); err != nil {
			return nil, fmt.Errorf("read the topics of member %s: %w", member.MemberID, err)
		}
		topics[member.MemberID] = subscription.Topics
	}
	for i := range shares {
		var assignment kmsg.ConsumerMemberAssignment
		if err := assignment.ReadFrom(shares[i].MemberAssignment); err != nil {
			return nil, fmt.Errorf("read the share of member %s: %w", shares[i].MemberID, err)
		}
		var counted []string
		for _, topic := range topics[shares[i].MemberID] {
			counted = append(counted, fmt.Sprintf("%s:%d", topic, counts[topic]))
		}
		assignment.UserData = []byte(sortedList(counted))
		shares[i].MemberAssignment = assignment.AppendTo(nil)
	}
	return shares, nil
}

// parseAssignment parses the partitions of an assignment, and the topics that it was made for, with the number of
// their partitions.
func parseAssignment(raw []byte) (owned map[string][]int32, counts map[string]int32, err error) {
	var assignment kmsg.ConsumerMemberAssignment
	if err := assignment.ReadFrom(raw); err != nil {
		return nil, nil, err
	}
	owned = make(map[string][]int32, len(assignment.Topics))
	for _, topic := range assignment.Topics {
		owned[topic.Topic] = topic.Partitions
	}
	counts = map[string]int32{}
	for counted := range strings.SplitSeq(string(assignment.UserData), ",") {
		topic, count, _ := strings.Cut(counted, ":")
		n, err := strconv.ParseInt(count, 10, 32)
		if err != nil {
			return nil, nil, fmt.Errorf("it was made for %q; want TOPIC:PARTITIONS", counted)
		}
		counts[topic] = int32(n)
	}
	return owned, counts, nil
}

// sorted returns partitions, ordered by topic and ID.
func sorted(owned map[string][]int32) []state.Partition {
	var all []state.Partition
	for _, topic := range slices.Sorted(maps.Keys(owned)) {
		for _, id := range slices.Sorted(slices.Values(owned[topic])) {
			all = append(all, state.Partition{Topic: topic, ID: id})
		}
	}
	return all
}

// without returns the partitions of one assignment that are not in another.
func without(owned, other map[string][]int32) []state.Partition {
	return slices.DeleteFunc(sorted(owned), func(p state.Partition) bool { return slices.Contains(other[p.Topic], p.ID) })
}
