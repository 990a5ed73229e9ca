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
	"pgregory.net/rapid"
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
	e.request.SetVersion(versions[kmsg.Key(e.request.Key())].min)
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
	resp.SetVersion(versions[kmsg.Metadata].min)
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
	resp.SetVersion(versions[kmsg.Fetch].min)
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

// enough is how many records are worth a fetch.
const enough = 200

// A leader whose records come fast is asked again when enough are expected, by the rate of the last answers.
func TestPaceOfManyRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPacedBroker(t)
		b.limit = 1000
		p := NewPoller(PollerConfig{Transport: b, Pace: 20 * time.Millisecond, Enough: func() int { return enough }, MaxWaiting: 10})
		p.Add("t", 0, 0)
		for _, step := range []struct {
			at      time.Duration
			records int64
		}{{0, 1}, {10, 4 * enough}, {30, 650}, {60, 1}, {75, 0}} {
			b.grow(step.at*time.Millisecond, step.records)
		}
		synctest.Wait()
		p.Close()
		want := []string{
			"0s from 0",      // the first answer says nothing of the rate
			"20ms from 1",    // 800 in 20 ms: 200 in 5 ms
			"25ms from 801",  // held for 5 ms; then 1250 in 25 ms: 200 in 4 ms
			"34ms from 1451", // held for 26 ms; then 938.5 in 48.75 ms: 200 in 10.4 ms
			"70.388918ms from 1452",
		}
		if diff := cmp.Diff(want, b.asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

// At any rate, evenly or in lumps, the pauses come to what the rate is worth, and stay there.
func TestPauseByRate(t *testing.T) {
	const pace = 24 * time.Millisecond
	cfg := PollerConfig{Pace: pace, Enough: func() int { return enough }}
	for _, test := range []struct {
		perSecond   int64
		every       time.Duration // how often records come
		least, most time.Duration // of the pauses
	}{
		{300, 3 * time.Millisecond, pace, pace},
		{3_000, time.Millisecond, pace, pace},
		{3_000, 20 * time.Millisecond, pace, pace},
		{3_000, 100 * time.Millisecond, pace, pace},
		{8_000, time.Millisecond, pace, pace},
		{20_000, 100 * time.Microsecond, 9900 * time.Microsecond, 10100 * time.Microsecond},
		{20_000, 5 * time.Millisecond, 8 * time.Millisecond, 13 * time.Millisecond},
		{100_000, 100 * time.Microsecond, 1900 * time.Microsecond, 2100 * time.Microsecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, taken := time.Now(), int64(0)
			l := &leader{}
			for i := range 200 {
				time.Sleep(time.Until(l.restUntil))
				asked := time.Now()
				came := func() int64 {
					return int64(time.Since(start)/test.every) * test.perSecond * int64(test.every) / int64(time.Second)
				}
				for came() == taken { // the broker holds the fetch until there is a record
					time.Sleep(test.every - time.Since(start)%test.every)
				}
				records := came() - taken
				taken += records
				l.rest(asked, records, &cfg)
				if pause := l.restUntil.Sub(asked); i > 20 && (pause < test.least || pause > test.most) && time.Since(asked) == 0 {
					t.Errorf("%d records a second, each %v: the pause is %v after %d fetches, want %v to %v",
						test.perSecond, test.every, pause, i, test.least, test.most)
				}
			}
		})
	}
}

// However records come, a pause is at most the pace, and the whole pace while fewer come than are enough in it.
func TestPauseOfAnyRecords(t *testing.T) {
	const pace = 24 * time.Millisecond
	cfg := PollerConfig{Pace: pace, Enough: func() int { return enough }}
	rapid.Check(t, func(rt *rapid.T) {
		few := rapid.Bool().Draw(rt, "few")
		held := rapid.SliceOfN(rapid.Int64Range(0, int64(2*pace)), 30, 30).Draw(rt, "held")
		share := rapid.SliceOfN(rapid.Float64Range(0, 0.99), 30, 30).Draw(rt, "records")
		var wrong string
		synctest.Test(t, func(*testing.T) {
			var l leader
			for i := range held {
				time.Sleep(time.Until(l.restUntil))
				asked, before := time.Now(), l.answered
				time.Sleep(time.Duration(held[i]))
				records := share[i] * 100 * enough
				if few && !before.IsZero() {
					records = share[i] * float64(time.Since(before)) / float64(pace) * enough
				}
				l.rest(asked, int64(records), &cfg)
				rests := time.Until(l.restUntil)
				if rests > pace || rests < 0 || few && l.restUntil != asked.Add(pace) && rests != pace {
					wrong = fmt.Sprintf("after %d records, asked %v before, the leader rests for %v", int64(records), time.Duration(held[i]), rests)
				}
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
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
