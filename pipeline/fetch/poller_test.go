package fetch

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/state"
)

func TestPollManyPartitions(t *testing.T) {
	const partitions, each = 24, 50
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(partitions, "a", "b"))
	cl := newClient(t, c)
	p := newPoller(t, c)
	want := make(map[state.Partition]int)
	for _, topic := range []string{"a", "b"} {
		for i := range int32(partitions) {
			produce(t, cl, numbered(topic, i, 0, each)...)
			p.Add(topic, i, 0)
			want[state.Partition{Topic: topic, ID: i}] = each
		}
	}
	ctx := testContext(t)
	var d Decoder
	var r Record
	got := make(map[state.Partition]int)
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
	if lag, known := p.Lag("a", 3, int64(got[state.Partition{Topic: "a", ID: 3}])); lag != (Lag{}) || !known {
		t.Errorf("the lag is %+v (known: %v), want a known 0", lag, known)
	}
}

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

// The data of a partition stays valid until it is released, also while more is fetched.
func TestPartitionsStayUntilReleased(t *testing.T) {
	const n = 20
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	cl := newClient(t, c)
	for i := range n {
		produce(t, cl, numbered("t", 0, i, i+1)...)
	}
	p := newPoller(t, c, func(cfg *PollerConfig) { cfg.PartitionMaxBytes = 1 })
	p.Add("t", 0, 0)
	var held []*PartitionData
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
			t.Errorf("partition %d holds %v, error %v; want %v", i, records, err, want)
		}
		part.Release()
		part.Release() // twice does no harm
		if part.records != nil {
			t.Error("the records are still held after Release")
		}
	}
}

// Data fetched before a seek is never returned after it, neither data that waits for Poll nor data under way.
func TestSeekDropsFetchedRecords(t *testing.T) {
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
	p.Seek("t", 5, 0) // never added: no effect
	p.Remove("t", 5)
	if _, known := p.Lag("t", 5, 0); known {
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

func TestSeekDropsRequestsUnderWay(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	cl := newClient(t, c)
	for i := range 5 { // one record per batch, so that a fetch from 3 does not return earlier records
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

// While Poll is not called, a leader is asked for no more than MaxWaiting responses.
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
	if lag, known := p.Lag("t", 0, 2); lag.Records != 8 || !known {
		t.Errorf("the lag is %+v (known: %v), want 8", lag, known)
	}
	p.mu.Lock()
	wake := p.leaders[0].wake
	p.mu.Unlock()
	for range 5 { // woken without reason, it must not ask, either
		signal(wake)
		eventually(t, "the loop to see it", func() bool { return len(wake) == 0 })
	}
	if n := len(offsets); n != 2 {
		t.Errorf("%d fetches without a Poll, want 2", n)
	}
	if got := pollUntil(t, p, 10); len(got) != 10 {
		t.Errorf("records %v, want 10", got)
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
	if err := <-ended; err != errClosed {
		t.Errorf("Poll: %v, want %v", err, errClosed)
	}
	if troubles := p.Troubles(); len(troubles) != 1 || troubles[0].Err != ErrNotYetFetched {
		t.Errorf("troubles: %v", troubles)
	}
}

// span is the offsets that a partition holds: from Start up to but not including End.
type span struct{ start, end int64 }

// offsets looks up the current offsets of partitions of a topic. End is the last stable offset under ReadCommitted,
// otherwise the high watermark. It does not retry.
func (p *Poller) offsets(ctx context.Context, topic string, partitions ...int32) (map[int32]span, error) {
	var all []state.Partition
	for _, partition := range partitions {
		all = append(all, state.Partition{Topic: topic, ID: partition})
	}
	logs, err := p.Logs(ctx, all)
	if err != nil {
		return nil, err
	}
	ranges := make(map[int32]span, len(partitions))
	for i, partition := range partitions {
		if logs[i].Err != nil {
			return nil, logs[i].Err
		}
		ranges[partition] = span{logs[i].Start, logs[i].Stable}
	}
	return ranges, nil
}
