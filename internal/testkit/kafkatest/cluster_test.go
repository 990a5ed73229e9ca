package kafkatest

import "testing"

// The cluster replaces a leader that is isolated, without its knowledge, and one that is killed; an
// unclean election picks a leader that lacks records.
func TestKafkaCluster(t *testing.T) {
	c := NewCluster(t)
	apart := c.CreateTopic(t, 2, 1)
	one, two := c.Node(1).Client(), c.Node(2).Client()
	defer closeIdle(one)
	defer closeIdle(two)
	end(t, two, apart) // waits until the broker knows the topic: once it is cut off, it learns nothing
	c.Split()
	c.AwaitLeader(t, apart, 1, 1)
	produce(t, one, apart, "on one side")
	if got := end(t, two, apart); got != 0 {
		t.Errorf("the broker that is cut off reports the log's end as %d, want 0: it must believe that it is the leader", got)
	}
	c.Unite()
	c.AwaitLeader(t, apart, 1, 1, 2)

	topic := c.CreateTopic(t, 2, 3)
	client := c.Client()
	defer closeIdle(client)
	produce(t, client, topic, "on both")
	c.Node(2).Kill()
	c.AwaitLeader(t, topic, 3, 3)
	produce(t, client, topic, "on one")
	c.Node(3).Kill()
	c.Node(2).Start()
	c.ElectUnclean(t, topic)
	c.AwaitLeader(t, topic, 2, 2)
	if got := end(t, client, topic); got != 1 {
		t.Errorf("the log ends at %d after an unclean election, want 1", got)
	}
	c.Node(3).Start()
	c.AwaitLeader(t, topic, 2, 2, 3)
}
