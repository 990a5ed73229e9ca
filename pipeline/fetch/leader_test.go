package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit/server"
	"github.com/weir-stream/weir/state"
)

// The partitions take turns at being first in a request: only the first is certain to get a batch
// above the limits.
func TestRequestsRotate(t *testing.T) {
	p := NewPoller(PollerConfig{})
	defer p.Close()
	l := new(leader)
	for i := range int32(3) {
		l.positions = append(l.positions, &position{Partition: state.Partition{Topic: "t", ID: i}, maxBytes: 1, epoch: 5})
	}
	l.positions = append(l.positions, &position{Partition: state.Partition{Topic: "u", ID: 0}}, &position{stopped: true})
	first := make(map[state.Partition]int)
	for range 2 * len(l.positions) {
		req, _, alive := p.nextFetch(l)
		if !alive || len(req.sent) != 4 || len(req.Topics) != 2 {
			t.Fatalf("unexpected request %+v", req)
		}
		first[state.Partition{Topic: req.Topics[0].Topic, ID: req.Topics[0].Partitions[0].Partition}]++
	}
	for _, pos := range l.positions[:4] {
		if first[pos.Partition] < 2 {
			t.Errorf("%v comes first in %d requests, want at least 2", pos.Partition, first[pos.Partition])
		}
	}
}

// A partition that is held is not asked for. A loop that has nothing else to ask for goes on once it no longer is.
func TestHold(t *testing.T) {
	p := NewPoller(PollerConfig{})
	defer p.Close()
	l := &leader{wake: make(chan struct{}, 1)}
	for i := range int32(2) {
		pos := &position{Partition: state.Partition{Topic: "t", ID: i}, maxBytes: 1, leader: l}
		l.positions, p.positions[pos.Partition] = append(l.positions, pos), pos
	}
	p.Hold("t", 1, true)
	p.Hold("t", 2, true) // it has left
	req, _, _ := p.nextFetch(l)
	if len(req.sent) != 1 || req.Topics[0].Partitions[0].Partition != 0 {
		t.Errorf("while one is held, asked for %+v", req.Topics)
	}
	p.Hold("t", 0, true)
	if req, rest, alive := p.nextFetch(l); req != nil || rest < time.Minute || !alive {
		t.Errorf("while both are held, asked for %+v, and then in %v", req, rest)
	}
	p.Hold("t", 1, false)
	select {
	case <-l.wake:
	default:
		t.Error("the loop is not woken")
	}
	if req, _, _ := p.nextFetch(l); len(req.sent) != 1 || req.Topics[0].Partitions[0].Partition != 1 {
		t.Errorf("while the other one is held, asked for %+v", req.Topics)
	}
}

func TestOffsetOutOfRange(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	cl := newClient(t, c)
	produce(t, cl, numbered("t", 0, 0, 10)...)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{
		Topic: "t", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 0, Offset: 4}},
	}}
	if _, err := req.RequestWith(testContext(t), cl); err != nil {
		t.Fatal(err)
	}
	p := newPoller(t, c)
	for _, offset := range []int64{2, 11, -1} {
		p.Add("t", 0, offset)
		_, err := p.Poll(testContext(t))
		var out *OffsetOutOfRangeError
		if !errors.As(err, &out) || *out != (OffsetOutOfRangeError{"t", 0, offset, 4, 10}) {
			t.Fatalf("from %d: error %v, want that of an offset outside [4, 10)", offset, err)
		}
		if want := fmt.Sprintf("fetch: offset %d of t/0 is outside the log, which holds [4, 10)", offset); err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		if troubles := p.Troubles(); len(troubles) != 0 {
			t.Errorf("troubles: %v", troubles)
		}
	}
	p.Seek("t", 0, 9)
	if diff := cmp.Diff([]string{"9:9"}, pollUntil(t, p, 10)); diff != "" {
		t.Errorf("records after Seek (-want +got):\n%s", diff)
	}
}

// A position that a leader does not know yet is retried.
func TestOffsetOutOfRangeIsTransient(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "t", Err: kerr.OffsetOutOfRange, Count: 2})
	p := newPoller(t, c)
	p.Add("t", 0, 1)
	if diff := cmp.Diff([]string{"1:1", "2:2"}, pollUntil(t, p, 3)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if fault.Hits() != 2 {
		t.Errorf("%d of 2 faults were injected", fault.Hits())
	}
}

// What a leader answers late, to a request from before a newer one was found, is not taken for an answer of that.
func TestAnswerOfAnEarlierLeader(t *testing.T) {
	for epoch, want := range map[int32]int64{4: 0, 5: 77} {
		pos := &position{Partition: first, epoch: 5}
		p := &Poller{positions: map[state.Partition]*position{first: pos}}
		req := &fetchRequest{sent: map[state.Partition]sentPosition{first: {position: pos, epoch: epoch}}}
		part := kmsg.NewFetchResponseTopicPartition()
		part.HighWatermark = 77
		p.take(req, &kmsg.FetchResponse{Topics: []kmsg.FetchResponseTopic{{Topic: first.Topic, Partitions: []kmsg.FetchResponseTopicPartition{part}}}}, nil)
		if got := pos.ends.highWatermark; got != want {
			t.Errorf("an answer of the leader of epoch %d to a position in epoch 5: the log ends at %d, want %d", epoch, got, want)
		}
	}
}

// What becomes of a request to an earlier leader, as that it stopped and does not answer, takes no position away from a newer one.
func TestFailureOfAnEarlierLeader(t *testing.T) {
	for epoch, want := range map[int32]int{4: 0, 5: 1} {
		pos := &position{Partition: first, epoch: 5}
		p := &Poller{positions: map[state.Partition]*position{first: pos}}
		req := &fetchRequest{sent: map[state.Partition]sentPosition{first: {position: pos, epoch: epoch}}}
		if got := p.current(req); len(got) != want {
			t.Errorf("a request to the leader of epoch %d has %d positions that are in epoch 5, want %d", epoch, len(got), want)
		}
	}
}

func TestLeaderMoves(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(1, "t"))
	cl := newClient(t, c)
	p := newPoller(t, c)
	p.Add("t", 0, 0)
	for i := range 6 {
		if err := c.MoveTopicPartition("t", 0, int32(i%3)); err != nil {
			t.Fatal(err)
		}
		produce(t, cl, numbered("t", 0, i, i+1)...)
		if diff := cmp.Diff([]string{fmt.Sprintf("%d:%d", i, i)}, pollUntil(t, p, int64(i+1))); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	}
}

// Every temporary error of a partition is retried.
func TestTemporaryErrorsAreRetried(t *testing.T) {
	for _, err := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.UnknownTopicOrPartition,
		kerr.KafkaStorageError, kerr.TopicAuthorizationFailed, kerr.UnknownServerError,
	} {
		t.Run(err.Message, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
			produce(t, newClient(t, c), numbered("t", 0, 0, 1)...)
			fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "t", Err: err, Count: 2})
			p := newPoller(t, c)
			p.Add("t", 0, 0)
			pollUntil(t, p, 1)
			if fault.Hits() != 2 {
				t.Errorf("%d of 2 faults were injected", fault.Hits())
			}
		})
	}
}

func TestBrokerRestarts(t *testing.T) {
	dir := t.TempDir()
	port, err := server.FreePort() // nobody else gets it while the broker is down
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"), kfake.Ports(port), kfake.DataDir(dir))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	log := new(lockedBuffer)
	p := newPoller(t, c, func(cfg *PollerConfig) { cfg.Logger = log.logger() })
	p.Add("t", 0, 0)
	p.Add("t", 1, 0)
	pollUntil(t, p, 3)
	eventually(t, "both partitions", func() bool { return len(p.Troubles()) == 0 })

	c.Close()
	eventually(t, "trouble", func() bool {
		troubles := p.Troubles()
		return len(troubles) == 2 && troubles[0].Err != nil && troubles[1].Partition == 1
	})
	for _, trouble := range p.Troubles() {
		if trouble.Topic != "t" {
			t.Errorf("trouble %+v, want one of topic t", trouble)
		}
	}
	c = newCluster(t, kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir))
	produce(t, newClient(t, c), numbered("t", 0, 3, 5)...)
	if diff := cmp.Diff([]string{"3:3", "4:4"}, pollUntil(t, p, 5)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	eventually(t, "the end of the trouble", func() bool { return len(p.Troubles()) == 0 })
	var messages []string
	for line := range strings.Lines(log.String()) {
		messages = append(messages, line[strings.Index(line, "level="):strings.Index(line, "\" ")+1])
	}
	if want := []string{`level=WARN msg="fetching fails, trying again"`, `level=INFO msg="fetching works again"`}; !slices.Equal(messages, want) {
		t.Errorf("logged %q, want %q", messages, want)
	}
}

// While nobody takes what a leader has answered, it is not asked, so nothing is known of a partition that failed before.
func TestTroubleOfALeaderThatIsNotAsked(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	produce(t, newClient(t, c), append(numbered("t", 0, 0, 1), numbered("t", 1, 0, 2)...)...)
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "t", Partitions: []int32{1}, Err: kerr.KafkaStorageError, Count: -1})
	p := newPoller(t, c)
	p.Add("t", 1, 0)
	failed := func() bool {
		troubles := p.Troubles()
		return len(troubles) == 1 && errors.Is(troubles[0].Err, kafka.KafkaStorageError)
	}
	eventually(t, "trouble", failed)
	p.Add("t", 0, 0)
	await(t, "an answer that waits", p.Ready())
	fault.Remove()
	eventually(t, "that the trouble is in doubt", func() bool { return !failed() })
	if troubles := p.Troubles(); len(troubles) != 1 || troubles[0].Err != ErrNotYetFetched {
		t.Errorf("got %+v", troubles)
	}
	signal(p.ready) // it was received above
	pollUntil(t, p, 2)
	eventually(t, "the end of the trouble", func() bool { return len(p.Troubles()) == 0 })
}

func TestTopicNotYetCreated(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "other"))
	cl := newClient(t, c)
	produce(t, cl, numbered("other", 0, 0, 1)...)
	p := newPoller(t, c)
	p.Add("t", 0, 0)
	p.Add("other", 0, 0)
	p.Add("other", 1, 0)
	pollUntil(t, p, 1) // the missing topics do not delay it
	want := map[string]string{
		"t/0":     "t/0: [3] Unknown Topic Or Partition: the request is for a topic or partition that does not exist on this broker",
		"other/1": "other/1: there is no such partition",
	}
	eventually(t, "trouble", func() bool {
		got := make(map[string]string)
		for _, trouble := range p.Troubles() {
			got[fmt.Sprintf("%s/%d", trouble.Topic, trouble.Partition)] = trouble.Err.Error()
		}
		return cmp.Equal(got, want)
	})
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 1, 1
	req.Topics = append(req.Topics, topic)
	if _, err := req.RequestWith(testContext(t), cl); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, numbered("t", 0, 0, 2)...)
	pollUntil(t, p, 2)
	p.Remove("other", 1)
	eventually(t, "the end of the trouble", func() bool { return len(p.Troubles()) == 0 })
}

// respond answers one fetch with these bytes for partition 0 of t.
func respond(c *kfake.Cluster, raw []byte) <-chan int32 {
	asked := make(chan int32, 1)
	c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.FetchRequest)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = "t", req.Topics[0].TopicID
		part := kmsg.NewFetchResponseTopicPartition()
		part.HighWatermark, part.LastStableOffset, part.RecordBatches = 100, 100, raw
		topic.Partitions = append(topic.Partitions, part)
		resp.Topics = append(resp.Topics, topic)
		asked <- req.Topics[0].Partitions[0].PartitionMaxBytes
		return resp, nil, true
	})
	return asked
}

// A batch that does not fit is requested again with more room.
func TestBatchLargerThanTheLimit(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	whole := testBatch{base: 0, records: run("a", "b")}.encode(t)
	first, second, third := respond(c, whole[:10]), respond(c, whole[:70]), respond(c, whole)
	fourth := respond(c, whole[:0])
	p := newPoller(t, c, func(cfg *PollerConfig) { cfg.PartitionMaxBytes = 100 })
	p.Add("t", 0, 0)
	if diff := cmp.Diff([]string{"0:a", "1:b"}, pollUntil(t, p, 2)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	for i, want := range []int32{100, 200, 400, 100} {
		if got := <-[]<-chan int32{first, second, third, fourth}[i]; got != want {
			t.Errorf("request %d allows %d bytes, want %d", i, got, want)
		}
	}
}

// A batch whose header cannot be read is returned once, and the partition then waits for a seek.
func TestCorruptHeaderStopsThePartition(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	raw := encode(t, testBatch{base: 0, records: run("a")}, testBatch{base: 1, records: run("b"), edit: func(raw []byte) { raw[batchMagicAt] = 1 }})
	respond(c, raw)
	p := newPoller(t, c)
	p.Add("t", 0, 0)
	part, err := p.Poll(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	records, next, err := decode(&d, part)
	if !slices.Equal(records, []string{"0:a"}) || next != 1 || !errors.Is(err, errMagic) {
		t.Errorf("records %v up to %d, error %v; want one record and the wrong magic", records, next, err)
	}
	p.mu.Lock()
	if pos := part.pos; !pos.stopped || pos.offset != 1 {
		t.Errorf("the partition is at %d, stopped: %v; want 1, true", pos.offset, pos.stopped)
	}
	p.mu.Unlock()
	p.Seek("t", 0, next)
	if diff := cmp.Diff([]string{"1:1", "2:2"}, pollUntil(t, p, 3)); diff != "" {
		t.Errorf("records after Seek (-want +got):\n%s", diff)
	}
}

// Where reading begins, offsets that are in no batch are logged, because a damaged batch may hide there.
func TestOffsetsInNoBatchAreLogged(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	produce(t, newClient(t, c), numbered("t", 0, 0, 9)...)
	var lines bytes.Buffer
	p := newPoller(t, c, func(cfg *PollerConfig) { cfg.Logger = slog.New(slog.NewTextHandler(&lines, nil)) })
	respond(c, encode(t, testBatch{base: 5, records: run("a")}))
	respond(c, encode(t, testBatch{base: 8, records: run("b")}))
	p.Add("t", 0, 3)
	for range 2 {
		part, err := p.Poll(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		var d Decoder
		if _, _, err := decode(&d, part); err != nil || d.Absent() != 2 {
			t.Errorf("%d offsets are absent, error %v; want 2", d.Absent(), err)
		}
	}
	p.Close()
	if n := strings.Count(lines.String(), "some offsets are in no batch"); n != 1 || !strings.Contains(lines.String(), "topic=t partition=0 from=3 to=6 absent=2") {
		t.Errorf("want one line about the offsets 3 and 4:\n%s", lines.String())
	}
}

func TestOffsetsErrors(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "t"))
	produce(t, newClient(t, c), numbered("t", 3, 0, 5)...)
	p := newPoller(t, c)
	got, err := p.offsets(testContext(t), "t", 0, 1, 2, 3)
	if diff := cmp.Diff(map[int32]span{0: {}, 1: {}, 2: {}, 3: {0, 5}}, got, cmp.AllowUnexported(span{})); diff != "" || err != nil {
		t.Errorf("offsets (-want +got):\n%s%v", diff, err)
	}
	_, err = p.offsets(testContext(t), "t", 4)
	if want := "fetch: offsets of t/4: there is no such partition"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	_, err = p.offsets(testContext(t), "none", 0)
	if !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("error %v, want %v", err, kafka.UnknownTopicOrPartition)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "t", Err: kerr.NotLeaderForPartition})
	_, err = p.offsets(testContext(t), "t", 0)
	if !errors.Is(err, kafka.NotLeaderForPartition) {
		t.Errorf("error %v, want %v", err, kafka.NotLeaderForPartition)
	}
}
