package kafkatest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// aclProperties makes a broker obey rules. Users at MutualAddr have the common names of their certificates.
var aclProperties = map[string]string{
	"authorizer.class.name":       "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
	"super.users":                 "User:ANONYMOUS", // at Addr, and the broker itself
	"ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
}

// Right is what a rule allows a user: an operation on one resource.
type Right struct {
	User      string
	Operation string // as Kafka's tools name it, such as Read
	Type      string // Topic, Group or TransactionalId
	Name      string
}

var resourceTypes = map[string]kafka.ResourceType{
	"Topic": kafka.ResourceTypeTopic, "Group": kafka.ResourceTypeGroup, "TransactionalId": kafka.ResourceTypeTransactionalID,
}

// Allow adds rules, and returns when they are in effect.
func (b *Broker) Allow(t testing.TB, rights ...Right) {
	t.Helper()
	client := b.Client()
	defer closeIdle(client)
	request := &kafka.CreateACLsRequest{}
	for _, r := range rights {
		entry := kafka.ACLEntry{
			ResourceType: resourceTypes[r.Type], ResourceName: r.Name, ResourcePatternType: kafka.PatternTypeLiteral,
			Principal: "User:" + r.User, Host: "*", PermissionType: kafka.ACLPermissionTypeAllow,
		}
		if err := entry.Operation.UnmarshalText([]byte(r.Operation)); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		request.ACLs = append(request.ACLs, entry)
	}
	made, err := client.CreateACLs(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range made.Errors {
		if err != nil {
			t.Fatalf("%+v: %v", rights[i], err)
		}
	}
	// The controller has them. The broker, which decides by them, learns of them a moment later.
	all := kafka.ACLFilter{
		ResourceTypeFilter: kafka.ResourceTypeAny, ResourcePatternTypeFilter: kafka.PatternTypeAny,
		Operation: kafka.ACLOperationTypeAny, PermissionType: kafka.ACLPermissionTypeAny,
	}
	testkit.Eventually(t, time.Minute, "the broker knows the rules", func() (bool, string) {
		known, err := client.DescribeACLs(t.Context(), &kafka.DescribeACLsRequest{Filter: all})
		if err == nil {
			err = known.Error
		}
		if err != nil {
			return false, err.Error()
		}
		n := 0
		for _, resource := range known.Resources {
			n += len(resource.ACLs)
		}
		return n >= len(rights), fmt.Sprintf("it knows %d of %d", n, len(rights))
	})
}

// decision matches what the authorizer logs of a request.
var decision = regexp.MustCompile(`Principal = User:(\S+) is (\w+) operation = (\w+) from host = \S+ on resource = (\w+):LITERAL:(\S+) for request = (\w+)`)

// Decisions returns the rights that users of a broker with ACLs have made use of, and those that they lacked, each
// with a request that asked for it.
func (b *Broker) Decisions(t testing.TB) (used, lacked map[Right]string) {
	t.Helper()
	log, err := os.ReadFile(b.runner.(*server.Process).LogPath)
	if err != nil {
		t.Fatal(err)
	}
	used, lacked = map[Right]string{}, map[Right]string{}
	for _, d := range decision.FindAllStringSubmatch(string(log), -1) {
		var operation kafka.ACLOperationType
		if err := operation.UnmarshalText([]byte(strings.ReplaceAll(d[3], "_", ""))); err != nil {
			t.Fatalf("%s: %v", d[0], err)
		}
		right := Right{User: d[1], Operation: operation.String(), Type: d[4], Name: d[5]}
		if strings.EqualFold(d[2], "allowed") {
			used[right] = d[6]
		} else {
			lacked[right] = d[6]
		}
	}
	return used, lacked
}
