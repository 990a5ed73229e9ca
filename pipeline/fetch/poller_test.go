package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestPollManyPartitions(t *testing.T) {
	const partitions, each = 24, 50
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(partitions, "a", "b"))
	cl := newClient(t, c)
	p := newPoller(t, c)
	want := make(map[topicPartition]int)
	for _, topic := range []string{"a", "b"} {
		for i := range int32(partitions) {
			produce(t, cl, numbered(topic, i, 0, each)...)
			p.Add(topic, i, 0)
			want[topicPartition{topic, i}] = each
		}
	}
	ctx := testContext(t)
	var d Decoder
	var r Record
	got := make(map[topicPartition]int)
	for n := 0; n < 2*partitions*each; {
		part, err := p.Poll(ctx)
		if err != nil {
			t.Fatalf("after %d records: %v; %v", n, err, p.Troubles())
		}
		key := part.key()
		for d.Reset(part); ; n++ {
			ok, err := d.Next(&r)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if string(r.Value) != fmt.Sprint(got[key]) || r.Offset != int64(got[key]) {
				t.Fatalf("%v: record %d has value %s and offset %d", key, got[key], r.Value, r.Offset)
			}
			got[key]++
		}
		part.Release()
	}
	if troubles := p.Troubles(); len(troubles) != 0 {
		t.Errorf("troubles: %v", troubles)
	}
	if lag, known := p.Lag("a", 3); lag != 0 || !known {
		t.Errorf("a lag of %d (known: %v)", lag, known)
	}
}

// onFetch calls f with each fetch request before the cluster handles it, until f returns false.
func onFetch(c *kfake.Cluster, f func(*kmsg.FetchRequest) bool) {
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if !f(req.(*kmsg.FetchRequest)) {
			c.DropControl()
		}
		return nil, nil, false
	})
}

// fetchFrom is closed when a fetch from offset has reached the cluster.
func fetchFrom(c *kfake.Cluster, offset int64) <-chan struct{} {
	reached := make(chan struct{})
	onFetch(c, func(req *kmsg.FetchRequest) bool {
		if req.Topics[0].Partitions[0].FetchOffset != offset {
			return true
		}
		close(reached)
		return false
	})
	return reached
}

func await(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-testContext(t).Done():
		t.Fatalf("timed out waiting for %s", what)
	}
}

// eventually waits for a condition which nothing signals.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ctx := testContext(t); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func forever(cfg *PollerConfig) { cfg.MaxWait = time.Hour }

// A seek ends a long poll that has no data, and takes effect at once.
func TestSeekDuringLongPoll(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	polling := fetchFrom(c, 3)
	p := newPoller(t, c, forever)
	p.Add("t", 0, 3)
	await(t, "the long poll", polling)
	p.Seek("t", 0, 1)
	if diff := cmp.Diff([]string{"1:1", "2:2"}, pollUntil(t, p, 3)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// A partition that is added does not have to wait for the end of its leader's long poll.
func TestAddDuringLongPoll(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	produce(t, newClient(t, c), numbered("t", 1, 0, 2)...)
	polling := fetchFrom(c, 0)
	p := newPoller(t, c, forever)
	p.Add("t", 0, 0)
	await(t, "the long poll", polling)
	p.Add("t", 1, 0)
	if diff := cmp.Diff([]string{"0:0", "1:1"}, pollUntil(t, p, 2)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if troubles := p.Troubles(); len(troubles) != 0 {
		t.Errorf("troubles: %v", troubles)
	}
}

// What a partition holds is its own until it is released, whatever is fetched meanwhile.
func TestPartitionsStayUntilReleased(t *testing.T) {
	const n = 20
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	cl := newClient(t, c)
	for i := range n {
		produce(t, cl, numbered("t", 0, i, i+1)...)
	}
	p := newPoller(t, c, func(cfg *PollerConfig) { cfg.PartitionMaxBytes = 1 })
	p.Add("t", 0, 0)
	var held []*Partition
	for range n {
		part, err := p.Poll(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, part)
	}
	for i, part := range held {
		records, _, err := decode(new(Decoder), part)
		if want := []string{fmt.Sprintf("%d:%d", i, i)}; !slices.Equal(records, want) || err != nil {
			t.Errorf("partition %d holds %v, %v, want %v", i, records, err, want)
		}
		part.Release()
		part.Release() // once is enough, twice does no harm
		if part.Records != nil {
			t.Error("there are records after Release")
		}
	}
}

// Each partition is the first of a request in its turn: only the first is sure to get a batch above the limits.
func TestRequestsRotate(t *testing.T) {
	p := NewPoller(PollerConfig{})
	defer p.Close()
	l := new(leader)
	for i := range int32(3) {
		l.positions = append(l.positions, &position{topicPartition: topicPartition{"t", i}, maxBytes: 1, epoch: 5})
	}
	l.positions = append(l.positions, &position{topicPartition: topicPartition{"u", 0}}, &position{stopped: true})
	first := make(map[topicPartition]int)
	for range 2 * len(l.positions) {
		req, alive := p.nextFetch(l)
		if !alive || len(req.sent) != 4 || len(req.Topics) != 2 {
			t.Fatalf("request %+v", req)
		}
		first[topicPartition{req.Topics[0].Topic, req.Topics[0].Partitions[0].Partition}]++
	}
	for _, pos := range l.positions[:4] {
		if first[pos.topicPartition] < 2 {
			t.Errorf("%v is the first of %d requests, want at least 2", pos.topicPartition, first[pos.topicPartition])
		}
	}
}

// What was fetched before a seek never comes out after it, whether it waits for Poll or is under way.
func TestSeekDropsWhatWasFetched(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	cl := newClient(t, c)
	produce(t, cl, numbered("t", 0, 0, 10)...)
	produce(t, cl, numbered("t", 1, 0, 10)...)
	p := newPoller(t, c)
	p.Add("t", 0, 0)
	queued := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.queue) > 0
	}
	eventually(t, "a response", queued)
	p.Seek("t", 0, 8)
	if diff := cmp.Diff([]string{"8:8", "9:9"}, pollUntil(t, p, 10)); diff != "" {
		t.Errorf("records after Seek (-want +got):\n%s", diff)
	}
	p.Add("t", 0, 7) // is there already: the same as Seek
	eventually(t, "a response", queued)
	p.Remove("t", 0)
	p.Add("t", 1, 9)
	if diff := cmp.Diff([]string{"9:9"}, pollUntil(t, p, 10)); diff != "" {
		t.Errorf("records after Remove (-want +got):\n%s", diff)
	}
	p.Add("t", 0, 0)
	eventually(t, "a response", queued)
	p.Remove("t", 0)
	p.Add("t", 0, 9) // another time, as after a rebalance
	if diff := cmp.Diff([]string{"9:9"}, pollUntil(t, p, 10)); diff != "" {
		t.Errorf("records after Remove and Add (-want +got):\n%s", diff)
	}
	p.Seek("t", 5, 0) // never added: nothing happens
	p.Remove("t", 5)
	if _, known := p.Lag("t", 5); known {
		t.Error("a partition that was never added has a lag")
	}
}

// afterFetch calls f once, between the arrival of a fetch response and its handling.
type afterFetch struct {
	kafka.RoundTripper
	once sync.Once
	f    func()
}

func (a *afterFetch) RoundTrip(ctx context.Context, addr net.Addr, req kafka.Request) (kafka.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(ctx, addr, req)
	if req.ApiKey() == protocol.Fetch && err == nil {
		a.once.Do(a.f)
	}
	return resp, err
}

func TestSeekDropsWhatIsUnderWay(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	cl := newClient(t, c)
	for i := range 5 { // a batch each, so that a fetch from 3 does not bring what is before
		produce(t, cl, numbered("t", 0, i, i+1)...)
	}
	hook := new(afterFetch)
	p := newPoller(t, c, func(cfg *PollerConfig) {
		hook.RoundTripper, cfg.Transport = cfg.Transport, hook
	})
	hook.f = func() { p.Seek("t", 0, 2) }
	p.Add("t", 0, 3)
	if diff := cmp.Diff([]string{"2:2", "3:3", "4:4"}, pollUntil(t, p, 5)); diff != "" {
		t.Errorf("records after Seek (-want +got):\n%s", diff)
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
			t.Fatalf("from %d: error %v", offset, err)
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

// A position that a leader does not know yet, although it is within the log, is waited for.
func TestOffsetOutOfRangeForAMoment(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "t", Err: kerr.OffsetOutOfRange, Count: 2})
	p := newPoller(t, c)
	p.Add("t", 0, 1)
	if diff := cmp.Diff([]string{"1:1", "2:2"}, pollUntil(t, p, 3)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if fault.Hits() != 2 {
		t.Errorf("%d of 2 faults", fault.Hits())
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

// Every error of a partition that is not its caller's business is waited out.
func TestErrorsAreWaitedOut(t *testing.T) {
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
				t.Errorf("%d of 2 faults", fault.Hits())
			}
		})
	}
}

func TestBrokerAwayAndBack(t *testing.T) {
	dir := t.TempDir()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"), kfake.DataDir(dir))
	addr := c.ListenAddrs()[0]
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	produce(t, newClient(t, c), numbered("t", 0, 0, 3)...)
	log := new(lockedBuffer)
	p := newPoller(t, c, func(cfg *PollerConfig) { cfg.Logger = log.logger() })
	p.Add("t", 0, 0)
	p.Add("t", 1, 0)
	pollUntil(t, p, 3)
	eventually(t, "both partitions", func() bool { return len(p.Troubles()) == 0 })

	before := time.Now()
	c.Close()
	eventually(t, "trouble", func() bool {
		troubles := p.Troubles()
		return len(troubles) == 2 && troubles[0].Err != nil && troubles[1].Partition == 1
	})
	for _, trouble := range p.Troubles() {
		if trouble.Topic != "t" || trouble.Since.Before(before) || trouble.Since.After(time.Now()) {
			t.Errorf("trouble %+v, want one since %v", trouble, before)
		}
	}
	c = newCluster(t, kfake.NumBrokers(1), kfake.Ports(number), kfake.DataDir(dir))
	produce(t, newClient(t, c), numbered("t", 0, 3, 5)...)
	if diff := cmp.Diff([]string{"3:3", "4:4"}, pollUntil(t, p, 5)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	eventually(t, "the end of the trouble", func() bool { return len(p.Troubles()) == 0 })
	var messages []string
	for line := range strings.Lines(log.String()) {
		messages = append(messages, line[strings.Index(line, "level="):strings.Index(line, "\" ")+1])
	}
	if want := []string{`level=WARN msg="cannot fetch, will keep trying"`, `level=INFO msg="fetching all partitions again"`}; !slices.Equal(messages, want) {
		t.Errorf("logged %q, want %q", messages, want)
	}
}

func TestTopicThatIsNotThereYet(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "other"))
	cl := newClient(t, c)
	produce(t, cl, numbered("other", 0, 0, 1)...)
	p := newPoller(t, c)
	p.Add("t", 0, 0)
	p.Add("other", 0, 0)
	p.Add("other", 1, 0)
	pollUntil(t, p, 1) // the missing ones do not hold it up
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

// While nobody polls, a leader is asked for no more than MaxWaiting responses.
func TestUnpolledResponsesAreBounded(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	cl := newClient(t, c)
	for i := range 10 {
		produce(t, cl, numbered("t", 0, i, i+1)...)
	}
	offsets := make(chan int64, 100)
	onFetch(c, func(req *kmsg.FetchRequest) bool {
		offsets <- req.Topics[0].Partitions[0].FetchOffset
		return true
	})
	p := newPoller(t, c, func(cfg *PollerConfig) { cfg.MaxWaiting, cfg.PartitionMaxBytes = 2, 1 })
	p.Add("t", 0, 0)
	waiting := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.queue)
	}
	eventually(t, "two responses", func() bool { return waiting() == 2 })
	if lag, known := p.Lag("t", 0); lag != 8 || !known {
		t.Errorf("a lag of %d (known: %v), want 8", lag, known)
	}
	p.mu.Lock()
	wake := p.leaders[0].wake
	p.mu.Unlock()
	for range 5 { // woken for nothing, it must not ask either
		signal(wake)
		eventually(t, "the loop to see it", func() bool { return len(wake) == 0 })
	}
	if n := len(offsets); n != 2 {
		t.Errorf("%d fetches while nobody polls, want 2", n)
	}
	if got := pollUntil(t, p, 10); len(got) != 10 {
		t.Errorf("records %v", got)
	}
}

func TestCloseEndsTheLongPoll(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	polling := fetchFrom(c, 0)
	p := newPoller(t, c, forever)
	p.Add("t", 0, 0)
	await(t, "the long poll", polling)
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error)
	go func() { _, err := p.Poll(ctx); ended <- err }()
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("Poll: %v, want %v", err, context.Canceled)
	}
	go func() { _, err := p.Poll(testContext(t)); ended <- err }()
	closed := make(chan struct{})
	go func() { p.Close(); close(closed) }()
	await(t, "Close", closed)
	if err := <-ended; err != ErrClosed {
		t.Errorf("Poll: %v, want %v", err, ErrClosed)
	}
	if troubles := p.Troubles(); len(troubles) != 1 || troubles[0].Err != errNotYetFetched {
		t.Errorf("troubles: %v", troubles)
	}
}

// respond answers one fetch with these bytes for partition 0 of t.
func respond(c *kfake.Cluster, raw []byte) <-chan int32 {
	asked := make(chan int32, 1)
	c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.FetchRequest)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic = "t"
		part := kmsg.NewFetchResponseTopicPartition()
		part.HighWatermark, part.LastStableOffset, part.RecordBatches = 100, 100, raw
		topic.Partitions = append(topic.Partitions, part)
		resp.Topics = append(resp.Topics, topic)
		asked <- req.Topics[0].Partitions[0].PartitionMaxBytes
		return resp, nil, true
	})
	return asked
}

// A batch that does not fit is asked for again with more room.
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

// A batch whose header cannot be read comes out once, and the partition then waits for a seek.
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
	if !slices.Equal(records, []string{"0:a"}) || next != 1 || !errors.Is(err, ErrMagic) {
		t.Errorf("records %v up to %d, error %v", records, next, err)
	}
	p.mu.Lock()
	if pos := part.pos; !pos.stopped || pos.offset != 1 {
		t.Errorf("the partition is at %d, stopped: %v", pos.offset, pos.stopped)
	}
	p.mu.Unlock()
	p.Seek("t", 0, next)
	if diff := cmp.Diff([]string{"1:1", "2:2"}, pollUntil(t, p, 3)); diff != "" {
		t.Errorf("records after Seek (-want +got):\n%s", diff)
	}
}

func TestOffsetsErrors(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "t"))
	produce(t, newClient(t, c), numbered("t", 3, 0, 5)...)
	p := newPoller(t, c)
	got, err := p.Offsets(testContext(t), "t", 0, 1, 2, 3)
	if diff := cmp.Diff(map[int32]Range{0: {}, 1: {}, 2: {}, 3: {0, 5}}, got); diff != "" || err != nil {
		t.Errorf("offsets (-want +got):\n%s%v", diff, err)
	}
	_, err = p.Offsets(testContext(t), "t", 4)
	if want := "fetch: offsets of t/4: there is no such partition"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	_, err = p.Offsets(testContext(t), "none", 0)
	if !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("error %v, want %v", err, kafka.UnknownTopicOrPartition)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "t", Err: kerr.NotLeaderForPartition})
	_, err = p.Offsets(testContext(t), "t", 0)
	if !errors.Is(err, kafka.NotLeaderForPartition) {
		t.Errorf("error %v, want %v", err, kafka.NotLeaderForPartition)
	}
}
