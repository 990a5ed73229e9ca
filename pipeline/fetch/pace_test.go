package fetch

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// pacedBroker leads t/0 in virtual time. It answers a fetch with at most limit batches of a record
// each, as soon as there is one.
type pacedBroker struct {
	t     *testing.T
	start time.Time
	limit int64
	open  int64         // offsets behind an open transaction, at the end of the log
	takes time.Duration // to answer

	mu    sync.Mutex
	grown chan struct{} // closed when there are more
	end   int64
	asked []string // when, and from where
}

func newPacedBroker(t *testing.T) *pacedBroker {
	return &pacedBroker{t: t, start: time.Now(), limit: 100, grown: make(chan struct{})}
}

func (b *pacedBroker) at() string { return time.Since(b.start).String() }

// RoundTrip implements kafka.RoundTripper.
func (b *pacedBroker) RoundTrip(_ context.Context, _ net.Addr, req kafka.Request) (kafka.Response, error) {
	e := req.(*exchange)
	e.request.SetVersion(versions[kmsg.Key(e.request.Key())].least)
	switch r := e.request.(type) {
	case *kmsg.MetadataRequest:
		*e.body = b.metadata().AppendTo(nil)
	case *kmsg.FetchRequest:
		resp, err := b.fetch(e.ctx, r)
		if err != nil {
			return nil, err
		}
		*e.body = resp.AppendTo(nil)
	}
	return reply{e.ApiKey()}, nil
}

func (b *pacedBroker) metadata() *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	resp.SetVersion(versions[kmsg.Metadata].least)
	broker := kmsg.NewMetadataResponseBroker()
	broker.NodeID = 1
	part := kmsg.NewMetadataResponseTopicPartition()
	part.Leader = 1
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic, topic.Partitions = kmsg.StringPtr("t"), append(topic.Partitions, part)
	resp.Brokers, resp.Topics = append(resp.Brokers, broker), append(resp.Topics, topic)
	return resp
}

func (b *pacedBroker) fetch(ctx context.Context, req *kmsg.FetchRequest) (*kmsg.FetchResponse, error) {
	from := req.Topics[0].Partitions[0].FetchOffset
	b.mu.Lock()
	b.asked = append(b.asked, fmt.Sprintf("%s from %d", b.at(), from))
	b.mu.Unlock()
	patience := time.After(time.Duration(req.MaxWaitMillis) * time.Millisecond)
	for {
		b.mu.Lock()
		end, grown := b.end, b.grown
		b.mu.Unlock()
		if end-from >= int64(req.MinBytes) { // a record is of more than a byte
			time.Sleep(b.takes)
			return b.answer(from, end), nil
		}
		select {
		case <-grown:
		case <-patience:
			return b.answer(from, end), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *pacedBroker) answer(from, end int64) *kmsg.FetchResponse {
	part := kmsg.NewFetchResponseTopicPartition()
	part.HighWatermark, part.LastStableOffset = end+b.open, end
	for o := from; o < min(end, from+b.limit); o++ {
		part.RecordBatches = append(part.RecordBatches, testBatch{base: o, records: run(fmt.Sprint(o))}.encode(b.t)...)
	}
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(versions[kmsg.Fetch].least)
	resp.Topics = append(resp.Topics, topic)
	return resp
}

// grow appends records at a moment after the start, for which it waits.
func (b *pacedBroker) grow(at time.Duration, records int64) {
	time.Sleep(time.Until(b.start.Add(at)))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end += records
	close(b.grown)
	b.grown = make(chan struct{})
}

// paced reads with a Poller with a pace of 20 ms from a broker whose log feed grows, and compares when it asked, and
// when data arrived.
func paced(t *testing.T, b *pacedBroker, feed func(b *pacedBroker, p *Poller), wantAsked, wantCame []string) {
	t.Helper()
	p := NewPoller(PollerConfig{Transport: b, Pace: 20 * time.Millisecond})
	var came []string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var d Decoder
		for {
			part, err := p.Poll(context.Background())
			if err != nil {
				return
			}
			records, _, _ := decode(&d, part)
			came = append(came, fmt.Sprintf("%s %v", b.at(), records))
		}
	}()
	p.Add("t", 0, 0)
	feed(b, p)
	p.Close()
	<-ended
	if diff := cmp.Diff(wantAsked, b.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantCame, came); diff != "" {
		t.Errorf("came (-want +got):\n%s", diff)
	}
}

// A leader that had no more records is not asked again for the pace, so that records that arrive meanwhile are fetched
// together. Records after a longer pause are fetched at once.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paced(t, newPacedBroker(t), func(b *pacedBroker, _ *Poller) {
			for _, at := range []time.Duration{100, 105, 118, 125, 200} {
				b.grow(at*time.Millisecond, 1)
			}
			time.Sleep(10 * time.Millisecond)
		}, []string{"0s from 0", "120ms from 1", "140ms from 3", "160ms from 4"},
			[]string{"100ms [0:0]", "120ms [1:1 2:2]", "140ms [3:3]", "200ms [4:4]"})
	})
}

// The time that a fetch takes is part of the pace, unless the broker held it until there was a record.
func TestPaceOfASlowBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPacedBroker(t)
		b.takes = 3 * time.Millisecond
		paced(t, b, func(b *pacedBroker, _ *Poller) {
			for _, at := range []time.Duration{100, 105, 130, 165} {
				b.grow(at*time.Millisecond, 1)
			}
			time.Sleep(2 * time.Millisecond)
		}, []string{"0s from 0", "123ms from 1", "143ms from 2", "163ms from 3"},
			[]string{"103ms [0:0]", "126ms [1:1]", "146ms [2:2]"})
	})
}

// An open transaction blocks the records after it, which do not count as more to fetch.
func TestPaceBehindAnOpenTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPacedBroker(t)
		b.open = 7
		paced(t, b, func(b *pacedBroker, _ *Poller) {
			b.grow(0, 1)
			b.grow(5*time.Millisecond, 1)
			b.grow(30*time.Millisecond, 0)
		}, []string{"0s from 0", "20ms from 1"}, []string{"0s [0:0]", "20ms [1:1]"})
	})
}

// A leader that has more than fits in an answer is asked again at once.
func TestCatchingUpIsNotPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPacedBroker(t)
		b.limit = 2
		paced(t, b, func(b *pacedBroker, _ *Poller) {
			b.grow(10*time.Millisecond, 5)
			b.grow(15*time.Millisecond, 1)
			b.grow(40*time.Millisecond, 0)
		}, []string{"0s from 0", "10ms from 2", "10ms from 4", "30ms from 5"},
			[]string{"10ms [0:0 1:1]", "10ms [2:2 3:3]", "10ms [4:4]", "30ms [5:5]"})
	})
}

// A position that is moved during the pace is requested at once.
func TestSeekIsNotPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paced(t, newPacedBroker(t), func(b *pacedBroker, p *Poller) {
			b.grow(10*time.Millisecond, 2)
			time.Sleep(5 * time.Millisecond)
			p.Seek("t", 0, 1)
			time.Sleep(5 * time.Millisecond)
		}, []string{"0s from 0", "15ms from 1"}, []string{"10ms [0:0 1:1]", "15ms [1:1]"})
	})
}
