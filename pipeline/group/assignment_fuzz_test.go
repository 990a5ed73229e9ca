package group

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzAssignments reads any bytes as an assignment and as what a member subscribes to: other members write them.
func FuzzAssignments(f *testing.F) {
	assignment := kmsg.ConsumerMemberAssignment{UserData: []byte("payments:4"), Topics: []kmsg.ConsumerMemberAssignmentTopic{{Topic: "payments", Partitions: []int32{0, 3}}}}
	subscription := kmsg.ConsumerMemberMetadata{Topics: []string{"payments"}}
	f.Add(assignment.AppendTo(nil), subscription.AppendTo(nil))
	f.Fuzz(func(t *testing.T, share, subscribes []byte) {
		owned, counts, err := parseAssignment(share)
		if err != nil && (owned != nil || counts != nil) {
			t.Errorf("%v of %v, with the error %v", owned, counts, err)
		}
		made, err := withTopics([]kmsg.SyncGroupRequestGroupAssignment{{MemberID: "m", MemberAssignment: share}},
			[]kmsg.JoinGroupResponseMember{{MemberID: "m", ProtocolMetadata: subscribes}}, map[string]int32{"payments": 4})
		if err != nil {
			return
		}
		again, _, err := parseAssignment(made[0].MemberAssignment)
		if err == nil && owned != nil && len(without(owned, again))+len(without(again, owned)) > 0 {
			t.Errorf("the share %v is sent as %v", owned, again)
		}
	})
}
