package fetch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/state"
)

// leader is a broker and the partitions that it leads. It is guarded by Poller.mu, but for wake.
type leader struct {
	id        int32
	wake      chan struct{} // something changed while the loop had nothing to do; capacity 1
	positions []*position
	waiting   int // responses that Poll has not wholly taken
	turn      int
	rests     time.Time               // until when it is left alone, see PollerConfig.Pace
	cancel    context.CancelCauseFunc // of the request under way, or nil
}

var errInterrupted = errors.New("fetch: the positions have changed")

// interrupt makes the loop ask again, with the positions as they are now.
func (l *leader) interrupt() {
	l.rests = time.Time{}
	if l.cancel != nil {
		l.cancel(errInterrupted)
	}
	signal(l.wake)
}

// fetchRequest is a request and the positions it was made from.
type fetchRequest struct {
	*kmsg.FetchRequest
	ctx    context.Context
	most   int16 // the greatest version that it can be sent in
	names  map[topicID]string
	leader *leader
	sent   map[topicPartition]sentPosition
}

// topicID is how brokers tell a topic from another one of the same name; zero where they do not tell.
type topicID = [16]byte

// fetchByName is the last version of Fetch that goes by the names of topics.
const fetchByName = 12

type sentPosition struct {
	*position
	offset     int64
	generation uint64
	epoch      int32
	leader     int32
}

// lead is the loop of one leader. It ends when the leader has no partitions left.
func (p *Poller) lead(l *leader) {
	rested := time.NewTimer(time.Hour)
	defer rested.Stop()
	for p.ctx.Err() == nil {
		req, rest, alive := p.nextFetch(l)
		if !alive {
			return
		}
		if req != nil {
			p.fetch(req)
			continue
		}
		rested.Reset(rest)
		select {
		case <-l.wake:
		case <-rested.C:
		case <-p.ctx.Done():
		}
	}
}

// nextFetch makes the next request, or nil if there is nothing to ask for now, until the leader is woken or the rest
// is over.
func (p *Poller) nextFetch(l *leader) (req *fetchRequest, rest time.Duration, alive bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(l.positions) == 0 {
		delete(p.leaders, l.id)
		return nil, 0, false
	}
	if l.waiting >= p.cfg.MaxWaiting {
		return nil, time.Hour, true
	}
	if rest = time.Until(l.rests); rest > 0 {
		return nil, rest, true
	}
	request := kmsg.NewPtrFetchRequest()
	request.MaxWaitMillis = int32(p.cfg.MaxWait.Milliseconds())
	request.MinBytes = 1
	request.MaxBytes = p.cfg.MaxBytes
	request.IsolationLevel = p.cfg.Isolation.protocol()
	req = &fetchRequest{FetchRequest: request, leader: l, names: make(map[topicID]string),
		sent: make(map[topicPartition]sentPosition, len(l.positions))}

	// A broker fills its response in the order of the request, so each partition gets to be the first in turn. The
	// first is also the only one that is sure to get a batch larger than the limits.
	l.turn++
	topics := make(map[string]int)
	for i := range l.positions {
		pos := l.positions[(l.turn+i)%len(l.positions)]
		if pos.stopped {
			continue
		}
		t, ok := topics[pos.topic]
		if !ok {
			t = len(request.Topics)
			topics[pos.topic] = t
			topic := kmsg.NewFetchRequestTopic()
			topic.Topic, topic.TopicID = pos.topic, pos.id
			req.names[pos.id] = pos.topic
			if pos.id == (topicID{}) {
				req.most = fetchByName
			}
			request.Topics = append(request.Topics, topic)
		}
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.Partition = pos.partition
		partition.CurrentLeaderEpoch = pos.epoch
		partition.LastFetchedEpoch = pos.fetched
		partition.FetchOffset = pos.offset
		partition.PartitionMaxBytes = pos.maxBytes
		request.MaxBytes = max(request.MaxBytes, pos.maxBytes)
		request.Topics[t].Partitions = append(request.Topics[t].Partitions, partition)
		req.sent[pos.topicPartition] = sentPosition{pos, pos.offset, pos.generation, pos.epoch, l.id}
	}
	if len(req.sent) == 0 {
		return nil, time.Hour, true
	}
	req.ctx, l.cancel = context.WithCancelCause(p.ctx)
	return req, 0, true
}

// fetch does one request and queues what comes of it.
func (p *Poller) fetch(req *fetchRequest) {
	body := bodies.Get().(*[]byte)
	kresp, err := p.exchanger.do(req.ctx, p.cfg.MaxWait+p.cfg.RequestTimeout, req.leader.id, req.FetchRequest, req.most, body)
	interrupted := context.Cause(req.ctx) != nil // by interrupt or Close: the request's own timeout is not seen here

	p.mu.Lock()
	defer p.mu.Unlock()
	req.leader.cancel(nil)
	req.leader.cancel = nil
	if err == nil {
		err = kerror(kresp.(*kmsg.FetchResponse).ErrorCode)
	}
	if err != nil {
		if !interrupted {
			p.fail(p.current(req), fmt.Errorf("broker %d: %w", req.leader.id, err))
		}
		return
	}
	resp := &response{body: body, leader: req.leader}
	resp.users.Store(1)
	defer resp.release()
	for _, t := range kresp.(*kmsg.FetchResponse).Topics {
		name := t.Topic
		if kresp.GetVersion() > fetchByName {
			name = req.names[t.TopicID]
		}
		for i := range t.Partitions {
			if sent, ok := req.sent[topicPartition{name, t.Partitions[i].Partition}]; ok && p.isCurrent(sent) {
				p.accept(sent, &t.Partitions[i], resp)
			}
		}
	}
	if resp.queued > 0 {
		req.leader.waiting++
		signal(p.ready)
		if p.caughtUp(req) {
			req.leader.rests = time.Now().Add(p.cfg.Pace)
		}
	}
}

// caughtUp says that the leader had no more of any position of a request than what was fetched.
func (p *Poller) caughtUp(req *fetchRequest) bool {
	for _, pos := range p.current(req) {
		if !pos.stopped && pos.offset < pos.ends.stable {
			return false
		}
	}
	return true
}

// current lists the positions of a request that have not changed since.
func (p *Poller) current(req *fetchRequest) []*position {
	var positions []*position
	for _, sent := range req.sent {
		if p.isCurrent(sent) {
			positions = append(positions, sent.position)
		}
	}
	return positions
}

// isCurrent tells whether a position has been neither removed nor moved since it was sent.
func (p *Poller) isCurrent(sent sentPosition) bool {
	return p.positions[sent.topicPartition] == sent.position && sent.generation == sent.position.generation
}

// accept takes what a response has for one partition.
func (p *Poller) accept(sent sentPosition, rp *kmsg.FetchResponseTopicPartition, resp *response) {
	pos := sent.position
	if err := kerror(rp.ErrorCode); err != nil {
		if err == kafka.OffsetOutOfRange {
			pos.stopped = true
			p.loops.Go(func() { p.outOfRange(sent) })
			return
		}
		p.fail([]*position{pos}, fmt.Errorf("%s/%d: %w", pos.topic, pos.partition, err))
		return
	}
	pos.ends.move(p.cfg.Isolation, rp.HighWatermark, rp.LastStableOffset, time.Now())
	if end := rp.DivergingEpoch; end.EndOffset >= 0 {
		p.end(pos, &DivergedError{pos.topic, pos.partition, pos.offset, pos.fetched, end.EndOffset, end.Epoch})
		return
	}
	if len(rp.RecordBatches) == 0 {
		p.recover(pos)
		return
	}
	next, epoch, err := scan(rp.RecordBatches, pos.offset)
	if next == pos.offset && err == nil {
		// Not one whole batch that goes further: brokers since 0.10.1 send at least one, but not everything that speaks
		// the protocol does.
		if pos.maxBytes > math.MaxInt32/2 {
			p.fail([]*position{pos}, fmt.Errorf("%s/%d: the batch at offset %d does not fit in a fetch of %d bytes",
				pos.topic, pos.partition, pos.offset, pos.maxBytes))
			return
		}
		pos.maxBytes *= 2
		return
	}
	p.recover(pos)
	part := &Partition{
		Topic:            pos.topic,
		Partition:        pos.partition,
		LeaderEpoch:      sent.epoch,
		Offset:           pos.offset,
		Isolation:        p.cfg.Isolation,
		HighWatermark:    rp.HighWatermark,
		LastStableOffset: rp.LastStableOffset,
		LastEpoch:        max(pos.fetched, epoch),
		LogStartOffset:   rp.LogStartOffset,
		Records:          rp.RecordBatches,
		pos:              pos,
		generation:       pos.generation,
		response:         resp,
	}
	for _, a := range rp.AbortedTransactions {
		part.Aborted = append(part.Aborted, abortedTransaction{a.ProducerID, a.FirstOffset})
	}
	pos.offset, pos.fetched = next, part.LastEpoch
	pos.maxBytes = p.cfg.PartitionMaxBytes
	pos.stopped = err != nil // the decoder comes to the same header, and its caller decides
	resp.users.Add(1)
	resp.queued++
	p.queue = append(p.queue, part)
}

// outOfRange looks up the range that the position is outside of and reports it. Poller.mu is not held.
func (p *Poller) outOfRange(sent sentPosition) {
	logs, err := p.Logs(p.ctx, []state.Partition{{Topic: sent.topic, ID: sent.partition}})

	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isCurrent(sent) {
		return
	}
	pos := sent.position
	var held Log
	if err == nil {
		held = logs[0]
		err = held.Err
	}
	if err == nil && held.Start <= sent.offset && sent.offset <= held.End {
		// A leader that was elected a moment ago may not know yet how far the log goes.
		err = fmt.Errorf("%s/%d: %w", pos.topic, pos.partition, kafka.OffsetOutOfRange)
	}
	if err != nil {
		pos.stopped = false
		p.fail([]*position{pos}, err)
		return
	}
	p.end(pos, &OffsetOutOfRangeError{pos.topic, pos.partition, sent.offset, held.Start, held.End})
}

// kerror turns an error code of the protocol into an error.
func kerror(code int16) error {
	if code == 0 {
		return nil
	}
	return kafka.Error(code)
}
