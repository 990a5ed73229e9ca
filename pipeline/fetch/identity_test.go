package fetch

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/weir-stream/weir/state"
)

var first = state.Partition{Topic: "t"}

func logsOf(t *testing.T, p *Poller, partitions ...state.Partition) []Log {
	t.Helper()
	logs, err := p.Logs(testContext(t), partitions)
	if err != nil {
		t.Fatal(err)
	}
	return logs
}

// A fetch names the epoch of its leader, so that a leader that was replaced, or does not yet know of its election, does
// not answer.
func TestFetchesAreFenced(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "t"))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	var sent atomic.Int32
	sent.Store(-2)
	onFetch(c, func(req *kmsg.FetchRequest) bool {
		sent.Store(req.Topics[0].Partitions[0].CurrentLeaderEpoch)
		return false
	})
	p := newPoller(t, c)
	log := logsOf(t, p, first)[0]
	p.Resume("t", 0, Known{Offset: 0, Epoch: -1, LeaderEpoch: log.LeaderEpoch, Log: log.ID})
	pollUntil(t, p, 3)
	if got := sent.Load(); got != log.LeaderEpoch || got < 0 {
		t.Errorf("the fetch has leader epoch %d, want %d", got, log.LeaderEpoch)
	}
	// With stale metadata fetches name the previous epoch, and are refused until the metadata is current.
	for _, err := range []*kerr.Error{kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch} {
		fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "t", Err: err, Count: 2})
		p.Seek("t", 0, 1)
		if diff := cmp.Diff([]string{"1:1", "2:2"}, pollUntil(t, p, 3)); diff != "" || fault.Hits() != 2 {
			t.Errorf("error %v, %d faults; records (-want +got):\n%s", err, fault.Hits(), diff)
		}
	}
}

// Leaders that hang do not use up the time of the others, which are asked at the same time.
func TestLogsOfLeadersThatHang(t *testing.T) {
	const brokers = 4
	c := newCluster(t, kfake.NumBrokers(brokers), kfake.SeedTopics(brokers, "t"))
	var partitions []state.Partition
	for id := range int32(brokers) {
		if err := c.MoveTopicPartition("t", id, id); err != nil {
			t.Fatal(err)
		}
		partitions = append(partitions, state.Partition{Topic: "t", ID: id})
	}
	const answers = brokers - 1 // the others hang
	c.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, c.CurrentNode() != answers
	})
	p := newPoller(t, c)
	ask := func(within time.Duration) ([]Log, error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return p.Logs(ctx, partitions)
	}
	logs, err := ask(time.Second)
	for within := 2 * time.Second; within < testTimeout && (err != nil || logs[answers].Err != nil); within *= 2 {
		logs, err = ask(within) // the machine is busy
	}
	if err != nil {
		t.Fatal(err)
	}
	for id, log := range logs {
		if answered := log.Err == nil; answered != (id == answers) {
			t.Errorf("partition %d: got error %v", id, log.Err)
		}
	}
}

// The same holds for the ends of epochs.
func TestEpochEndsOfLeadersThatHang(t *testing.T) {
	const brokers = 4
	c := newCluster(t, kfake.NumBrokers(brokers), kfake.SeedTopics(brokers, "t"))
	var queries []EpochQuery
	for id := range int32(brokers) {
		if err := c.MoveTopicPartition("t", id, id); err != nil {
			t.Fatal(err)
		}
		queries = append(queries, EpochQuery{Partition: state.Partition{Topic: "t", ID: id}, Leader: id, LeaderEpoch: -1})
	}
	const answers = brokers - 1 // the others hang
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, c.CurrentNode() != answers
	})
	ctx, cancel := context.WithTimeout(testContext(t), time.Second)
	defer cancel()
	for id, end := range newPoller(t, c).EpochEnds(ctx, queries) {
		if answered := end.Err == nil; answered != (id == answers) {
			t.Errorf("partition %d: got error %v", id, end.Err)
		}
	}
}

// The ends of logs are also asked of a leader in its epoch.
func TestLogsAreFenced(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	var asked atomic.Int32
	c.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked.Store(kreq.(*kmsg.ListOffsetsRequest).Topics[0].Partitions[0].CurrentLeaderEpoch)
		return nil, nil, false
	})
	p := newPoller(t, c)
	log := logsOf(t, p, first)[0]
	if log.Err != nil || log.Start != 0 || log.Stable != 3 || log.End != 3 || log.Partitions != 1 || log.ID.Cluster == "" || log.ID.Topic == "" {
		t.Errorf("unexpected log %+v", log)
	}
	if got := asked.Load(); got != log.LeaderEpoch || got < 0 {
		t.Errorf("the request has leader epoch %d, want %d", got, log.LeaderEpoch)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "t", Err: kerr.FencedLeaderEpoch, Count: 1})
	if log := logsOf(t, p, first)[0]; !errors.Is(log.Err, kafka.FencedLeaderEpoch) {
		t.Errorf("error %v, want %v", log.Err, kafka.FencedLeaderEpoch)
	}
}

// Records that arrive while a leader is asked for the ends of a log are not taken for those of an open transaction.
func TestStableOffsetOfAGrowingLog(t *testing.T) {
	for _, test := range []struct {
		open         bool
		stable, ends int64
	}{{false, 11, 11}, {true, 7, 11}} {
		c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
		end := int64(10)
		c.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			req := kreq.(*kmsg.ListOffsetsRequest)
			if req.Topics[0].Partitions[0].Timestamp != latest {
				return nil, nil, false
			}
			end++
			answer := kmsg.NewListOffsetsResponseTopicPartition()
			answer.Offset = end
			if test.open && req.IsolationLevel == ReadCommitted.protocol() {
				answer.Offset = 7
			}
			topic := kmsg.NewListOffsetsResponseTopic()
			topic.Topic, topic.Partitions = "t", append(topic.Partitions, answer)
			resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
			resp.Topics = append(resp.Topics, topic)
			return resp, nil, true
		})
		log := logsOf(t, newPoller(t, c), first)[0]
		if log.Err != nil || log.Stable != test.stable || log.End != test.ends {
			t.Errorf("with an open transaction: %v; got %+v, want the last stable offset %d and the end %d", test.open, log, test.stable, test.ends)
		}
	}
}

// epochEnd answers all requests for the end of an epoch with this one.
func epochEnd(c *kfake.Cluster, end EpochEnd) <-chan kmsg.OffsetForLeaderEpochRequestTopicPartition {
	asked := make(chan kmsg.OffsetForLeaderEpochRequestTopicPartition, 100)
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.OffsetForLeaderEpochRequest)
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = req.Topics[0].Topic
		for _, part := range req.Topics[0].Partitions {
			asked <- part
			answer := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			answer.Partition, answer.LeaderEpoch, answer.EndOffset = part.Partition, end.Epoch, end.Offset
			topic.Partitions = append(topic.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	return asked
}

// A leader of another epoch is asked whether it has the records fetched from the previous leader; if it does not, the
// partition stops.
func TestNewLeadersAreVerified(t *testing.T) {
	for _, test := range []struct {
		name  string
		known Known
		end   EpochEnd
		want  *divergedError
	}{
		{"it has all", Known{Offset: 2, Epoch: 0}, EpochEnd{Epoch: 0, Offset: 3}, nil},
		{"it does not know", Known{Offset: 2, Epoch: 0}, cannotTell, nil},
		{"it has no record of the epoch", Known{Offset: 2, Epoch: 7}, EpochEnd{Epoch: 0, Offset: 3}, nil},
		{"it lacks some", Known{Offset: 2, Epoch: 0}, EpochEnd{Epoch: 0, Offset: 2}, &divergedError{"t", 0, 3, 0, 2, 0}},
		{"it has all that is applied", Known{Offset: 2, Epoch: 0, Applied: 9, AppliedEpoch: 0}, EpochEnd{Epoch: 0, Offset: 9}, nil},
		{"it lacks some that is applied", Known{Offset: 2, Epoch: 0, Applied: 9, AppliedEpoch: 0}, EpochEnd{Epoch: 0, Offset: 8}, &divergedError{"t", 0, 9, 0, 8, 0}},
		{"it lacks some that is applied of a later epoch", Known{Offset: 2, Epoch: 0, Applied: 9, AppliedEpoch: 7}, EpochEnd{Epoch: 0, Offset: 8}, &divergedError{"t", 0, 9, 7, 8, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "t"))
			cl := newClient(t, c)
			produce(t, cl, numbered("t", 0, 0, 3)...)
			p := newPoller(t, c)
			log := logsOf(t, p, first)[0]
			known := test.known
			known.LeaderEpoch, known.Log = log.LeaderEpoch, log.ID
			p.Resume("t", 0, known)
			pollUntil(t, p, 3)
			asked := epochEnd(c, test.end)
			if err := c.MoveTopicPartition("t", 0, 1-log.Leader); err != nil {
				t.Fatal(err)
			}
			if test.want == nil {
				produce(t, cl, numbered("t", 0, 3, 4)...)
				if diff := cmp.Diff([]string{"3:3"}, pollUntil(t, p, 4)); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
			} else {
				_, err := p.Poll(testContext(t))
				diverged, _ := errors.AsType[*divergedError](err)
				if diverged == nil {
					t.Fatalf("error %v, want a divergence", err)
				}
				test.want.Epoch, test.want.EndEpoch = diverged.Epoch, diverged.EndEpoch
				if *diverged != *test.want || diverged.Of() != first {
					t.Errorf("%+v, want %+v", diverged, test.want)
				}
			}
			want := max(known.Epoch, known.AppliedEpoch)
			if q := <-asked; q.LeaderEpoch != want || q.CurrentLeaderEpoch <= log.LeaderEpoch {
				t.Errorf("the request is for the end of epoch %d in epoch %d, want the end of %d in a later one", q.LeaderEpoch, q.CurrentLeaderEpoch, want)
			}
		})
	}
}

// A new leader is asked about what is applied also before anything was fetched, and if it only turns out later that it is applied.
func TestNewLeadersAreVerifiedForWhatIsApplied(t *testing.T) {
	for name, reached := range map[string]bool{"known from the start": false, "found later": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "t"))
			produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
			p := newPoller(t, c)
			log := logsOf(t, p, first)[0]
			asked := epochEnd(c, EpochEnd{Epoch: 0, Offset: 4})
			known := Known{Offset: 0, Epoch: -1, LeaderEpoch: log.LeaderEpoch, Log: log.ID}
			if reached {
				p.Resume("t", 0, known)
				pollUntil(t, p, 3)
				p.Reach("t", 0, 5, 0)
			}
			if err := c.MoveTopicPartition("t", 0, 1-log.Leader); err != nil {
				t.Fatal(err)
			}
			if !reached {
				known.Applied = 5
				p.Resume("t", 0, known)
			}
			_, err := p.Poll(testContext(t))
			if want := (&divergedError{"t", 0, 5, 0, 4, 0}); err == nil || err.Error() != want.Error() {
				t.Errorf("error %v, want %v", err, want)
			}
			<-asked
		})
	}
}

// A divergence that a leader reports in its answer to a fetch stops the partition.
func TestDivergingFetch(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	p := newPoller(t, c)
	log := logsOf(t, p, first)[0]
	c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.FetchRequest)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		topic := kmsg.NewFetchResponseTopic()
		topic.TopicID = req.Topics[0].TopicID
		part := kmsg.NewFetchResponseTopicPartition()
		if req.Topics[0].Partitions[0].LastFetchedEpoch == 7 {
			part.DivergingEpoch.Epoch, part.DivergingEpoch.EndOffset = 6, 1
		}
		topic.Partitions = append(topic.Partitions, part)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	p.Resume("t", 0, Known{Offset: 2, Epoch: 7, LeaderEpoch: log.LeaderEpoch, Log: log.ID})
	_, err := p.Poll(testContext(t))
	want := "fetch: t/0 diverges from offset 2 in epoch 7: the log was truncated to offset 1 of epoch 6"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A leader that has no record of an epoch, but all up to the position, is fetched from by an earlier epoch.
func TestFetchByAnEarlierEpoch(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	p := newPoller(t, c)
	log := logsOf(t, p, first)[0]
	c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.FetchRequest)
		if epoch := req.Topics[0].Partitions[0].LastFetchedEpoch; epoch != 7 {
			if epoch != log.LeaderEpoch {
				t.Errorf("fetched by epoch %d, want %d", epoch, log.LeaderEpoch)
			}
			return nil, nil, false
		}
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		topic := kmsg.NewFetchResponseTopic()
		topic.TopicID = req.Topics[0].TopicID
		part := kmsg.NewFetchResponseTopicPartition()
		part.DivergingEpoch.Epoch, part.DivergingEpoch.EndOffset = log.LeaderEpoch, 3
		topic.Partitions = append(topic.Partitions, part)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	p.Resume("t", 0, Known{Offset: 2, Epoch: 7, LeaderEpoch: log.LeaderEpoch, Log: log.ID})
	if diff := cmp.Diff([]string{"2:2"}, pollUntil(t, p, 3)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// A topic that is recreated while, or before, it is fetched is another log.
func TestTopicRecreated(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	cl := newClient(t, c)
	produce(t, cl, numbered("t", 0, 0, 3)...)
	p := newPoller(t, c)
	log := logsOf(t, p, first)[0]
	known := Known{Offset: 0, Epoch: -1, LeaderEpoch: log.LeaderEpoch, Log: log.ID}
	p.Resume("t", 0, known)
	pollUntil(t, p, 3)
	if err := c.DeleteTopic("t"); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateTopic("t", 1, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, newClient(t, c), numbered("t", 0, 0, 5)...)
	for _, when := range []string{"while it is fetched", "before"} {
		_, err := p.Poll(testContext(t))
		other, _ := errors.AsType[*OtherLogError](err)
		if other == nil || other.Was != log.ID || other.Is != logsOf(t, p, first)[0].ID || other.Of() != first {
			t.Fatalf("%s: error %v, want that of another log", when, err)
		}
		p.Remove("t", 0)
		p.Resume("t", 0, known)
	}
}

// Brokers that support neither topic IDs nor the ends of epochs can still be read.
func TestOldBrokers(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"), kfake.MaxVersions(kversion.V2_0_0()))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	p := newPoller(t, c)
	log := logsOf(t, p, first)[0]
	if log.Err != nil || log.ID.Topic != "" || log.ID.Cluster == "" || log.End != 3 {
		t.Errorf("unexpected log %+v", log)
	}
	ends := p.EpochEnds(testContext(t), []EpochQuery{{first, log.Leader, log.LeaderEpoch, 0}, {first, log.Leader, log.LeaderEpoch, 1}})
	if diff := cmp.Diff([]EpochEnd{cannotTell, cannotTell}, ends); diff != "" {
		t.Errorf("ends of epochs (-want +got):\n%s", diff)
	}
	p.Resume("t", 0, Known{Offset: 1, Epoch: -1, LeaderEpoch: log.LeaderEpoch, Log: log.ID})
	if diff := cmp.Diff([]string{"1:1", "2:2"}, pollUntil(t, p, 3)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}
