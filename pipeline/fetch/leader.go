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

// leader is a broker and the partitions that it leads. It is guarded by Poller.mu, except wake.
type leader struct {
	id        int32
	wake      chan struct{} // something changed while the loop had nothing to do; capacity 1
	positions []*position
	waiting   int // responses that Poll has not completely taken
	turn      int
	restUntil time.Time               // not asked before, see PollerConfig.Pace
	answered  time.Time               // when it last answered with everything available
	records   float64                 // in such answers; those of the last four weigh about as much as all before
	elapsed   float64                 // the time in which they came, in ns
	cancel    context.CancelCauseFunc // of the request under way, or nil
}

var errInterrupted = errors.New("fetch: the positions have changed")

// interrupt makes the loop ask again, with the current positions.
func (l *leader) interrupt() {
	l.restUntil = time.Time{}
	if l.cancel != nil {
		l.cancel(errInterrupted)
	}
	signal(l.wake)
}

// taken notes that Poll has completely taken a response. A resting loop goes on by itself: waking it would cost as much
// as other steps of a batch.
func (l *leader) taken() {
	l.waiting--
	if !time.Now().Before(l.restUntil) {
		signal(l.wake)
	}
}

// rest sets when to ask again after an answer with everything available, of some records: a record that the answer just
// missed waits no longer than the pace, and less if enough are expected sooner. If the broker held the request until
// there was a record, that time begins with the answer.
func (l *leader) rest(asked time.Time, records int64, cfg *PollerConfig) {
	now := time.Now()
	if !l.answered.IsZero() {
		l.records = l.records*3/4 + float64(records)
		l.elapsed = l.elapsed*3/4 + float64(now.Sub(l.answered))
	}
	l.answered = now
	// The rate is that of the last few answers together. It does not depend on how long the leader rested between them,
	// so the pause is steady while the rate is, even if records come in lumps.
	pause := cfg.Pace
	if until := float64(cfg.Enough()) * l.elapsed; until < l.records*float64(pause) {
		pause = time.Duration(until / l.records)
	}
	if l.restUntil = asked.Add(pause); !l.restUntil.After(now) {
		l.restUntil = now.Add(pause)
	}
}

// fetchRequest is a request and the positions it was made from.
type fetchRequest struct {
	*kmsg.FetchRequest
	ctx    context.Context
	at     time.Time // when it was made
	limit  int16     // the greatest version that it can be sent in; 0 for any
	names  map[topicID]string
	leader *leader
	sent   map[state.Partition]sentPosition
}

// topicID distinguishes topics of the same name; zero if brokers do not report it.
type topicID = [16]byte

// fetchByName is the last version of Fetch that names topics by name.
const fetchByName = 12

type sentPosition struct {
	*position
	offset     int64
	generation uint64
	epoch      int32
}

// fetchLoop is the loop of one leader. It ends when the leader has no partitions left.
func (p *Poller) fetchLoop(l *leader) {
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

// nextFetch makes the next request, or nil if there is nothing to ask for until the leader is woken
// or the rest is over.
func (p *Poller) nextFetch(l *leader) (req *fetchRequest, rest time.Duration, alive bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(l.positions) == 0 {
		delete(p.leaders, l.id)
		return nil, 0, false
	}
	if rest = time.Until(l.restUntil); rest > 0 {
		return nil, rest, true
	}
	if l.waiting >= p.cfg.MaxWaiting {
		return nil, time.Hour, true
	}
	request := kmsg.NewPtrFetchRequest()
	request.MaxWaitMillis = int32(p.cfg.MaxWait.Milliseconds())
	request.MinBytes = 1
	request.MaxBytes = p.cfg.MaxBytes
	request.IsolationLevel = p.cfg.Isolation.protocol()
	req = &fetchRequest{FetchRequest: request, at: time.Now(), leader: l, names: make(map[topicID]string),
		sent: make(map[state.Partition]sentPosition, len(l.positions))}

	// A broker fills its response in the order of the request, so the partitions take turns at
	// being first. Only the first is certain to get a batch larger than the limits.
	l.turn++
	topics := make(map[string]int)
	for i := range l.positions {
		pos := l.positions[(l.turn+i)%len(l.positions)]
		if pos.stopped || pos.held {
			continue
		}
		t, ok := topics[pos.Topic]
		if !ok {
			t = len(request.Topics)
			topics[pos.Topic] = t
			topic := kmsg.NewFetchRequestTopic()
			topic.Topic, topic.TopicID = pos.Topic, pos.id
			req.names[pos.id] = pos.Topic
			if pos.id == (topicID{}) {
				req.limit = fetchByName
			}
			request.Topics = append(request.Topics, topic)
		}
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.Partition = pos.ID
		partition.CurrentLeaderEpoch = pos.epoch
		partition.LastFetchedEpoch = pos.fetchedEpoch
		partition.FetchOffset = pos.offset
		partition.PartitionMaxBytes = pos.maxBytes
		request.MaxBytes = max(request.MaxBytes, pos.maxBytes)
		request.Topics[t].Partitions = append(request.Topics[t].Partitions, partition)
		req.sent[pos.Partition] = sentPosition{pos, pos.offset, pos.generation, pos.epoch}
	}
	if len(req.sent) == 0 {
		return nil, time.Hour, true
	}
	req.ctx, l.cancel = context.WithCancelCause(p.ctx)
	return req, 0, true
}

// fetch sends one request and queues the result.
func (p *Poller) fetch(req *fetchRequest) {
	body := bodies.Get().(*[]byte)
	kresp, err := p.exchanger.do(req.ctx, p.cfg.MaxWait+requestTimeout, req.leader.id, req.FetchRequest, req.limit, body)
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
	p.take(req, kresp.(*kmsg.FetchResponse), resp)
	if resp.queued > 0 {
		req.leader.waiting++
		signal(p.ready)
		if p.caughtUp(req) {
			req.leader.rest(req.at, resp.records, &p.cfg)
		}
	}
}

// take accepts the partitions of a response whose positions have not changed since, and have the same leader. Poller.mu is held.
func (p *Poller) take(req *fetchRequest, from *kmsg.FetchResponse, resp *response) {
	for _, t := range from.Topics {
		name := t.Topic
		if from.Version > fetchByName {
			name = req.names[t.TopicID]
		}
		for i := range t.Partitions {
			sent, ok := req.sent[state.Partition{Topic: name, ID: t.Partitions[i].Partition}]
			if ok && p.isAwaited(sent) {
				p.accept(sent, &t.Partitions[i], resp)
			}
		}
	}
}

// caughtUp reports whether the leader had no more for any position of a request than was fetched.
func (p *Poller) caughtUp(req *fetchRequest) bool {
	for _, pos := range p.current(req) {
		if !pos.stopped && pos.offset < pos.ends.stable {
			return false
		}
	}
	return true
}

// current lists the positions of a request that have not changed since, and have the same leader.
func (p *Poller) current(req *fetchRequest) []*position {
	var positions []*position
	for _, sent := range req.sent {
		if p.isAwaited(sent) {
			positions = append(positions, sent.position)
		}
	}
	return positions
}

// isAwaited reports whether a position still depends on what becomes of a request: it has not changed since, and has the
// same leader. One before may have other records, and its failure says nothing of the present one.
func (p *Poller) isAwaited(sent sentPosition) bool {
	return p.isCurrent(sent) && sent.epoch == sent.position.epoch
}

// isCurrent reports whether a position was neither removed nor moved since it was sent.
func (p *Poller) isCurrent(sent sentPosition) bool {
	return p.positions[sent.Partition] == sent.position && sent.generation == sent.position.generation
}

// accept handles one partition of a response.
func (p *Poller) accept(sent sentPosition, rp *kmsg.FetchResponseTopicPartition, resp *response) {
	pos := sent.position
	if err := kerror(rp.ErrorCode); err != nil {
		if err == kafka.OffsetOutOfRange {
			pos.stopped = true
			p.loops.Go(func() { p.outOfRange(sent) })
			return
		}
		p.fail([]*position{pos}, fmt.Errorf("%v: %w", pos.Partition, err))
		return
	}
	pos.ends.move(p.cfg.Isolation, rp.HighWatermark, rp.LastStableOffset, time.Now())
	if end := rp.DivergingEpoch; end.EndOffset >= 0 {
		p.follow(pos, pos.offset, pos.fetchedEpoch, EpochEnd{Epoch: end.Epoch, Offset: end.EndOffset})
		p.recover(pos)
		return
	}
	if len(rp.RecordBatches) == 0 {
		p.recover(pos)
		return
	}
	part := &PartitionData{
		Topic:            pos.Topic,
		Partition:        pos.ID,
		leaderEpoch:      sent.epoch,
		Offset:           pos.offset,
		aligned:          pos.aligned,
		misplaced:        p.misplaced[pos.Partition],
		Isolation:        p.cfg.Isolation,
		highWatermark:    rp.HighWatermark,
		lastStableOffset: rp.LastStableOffset,
		logStartOffset:   rp.LogStartOffset,
		records:          rp.RecordBatches,
		pos:              pos,
		generation:       pos.generation,
		response:         resp,
	}
	at, epoch, err := scan(part)
	next := at.next
	if next == pos.offset && err == nil {
		// Not one whole batch was sent: brokers since 0.10.1 send at least one, but not every implementation of the
		// protocol does.
		if pos.maxBytes > math.MaxInt32/2 {
			p.fail([]*position{pos}, fmt.Errorf("%v: the batch at offset %d does not fit in a fetch of %d bytes",
				pos.Partition, pos.offset, pos.maxBytes))
			return
		}
		pos.maxBytes *= 2
		return
	}
	p.recover(pos)
	if misplaced, is := errors.AsType[*misplacedError](err); is {
		p.misplaced[pos.Partition] = misplaced
	} else {
		delete(p.misplaced, pos.Partition)
	}
	if at.absent > 0 && !pos.aligned {
		// Where reading goes on, a damaged batch may be one that the broker does not find.
		p.cfg.Logger.Warn("some offsets are in no batch, as is usual in a compacted topic, and elsewhere a loss",
			"topic", pos.Topic, "partition", pos.ID, "from", pos.offset, "to", next, "absent", at.absent)
	}
	part.LastEpoch = max(pos.fetchedEpoch, epoch)
	for _, a := range rp.AbortedTransactions {
		part.aborted = append(part.aborted, abortedTransaction{a.ProducerID, a.FirstOffset})
	}
	resp.records += next - pos.offset
	pos.aligned = pos.aligned || next > pos.offset
	pos.offset, pos.fetchedEpoch = next, part.LastEpoch
	pos.maxBytes = p.cfg.PartitionMaxBytes
	pos.stopped = err != nil // the decoder finds the same header, and its caller decides
	resp.users.Add(1)
	resp.queued++
	p.queue = append(p.queue, part)
}

// outOfRange looks up the range of the log, and reports that the position is outside. Poller.mu is not held.
func (p *Poller) outOfRange(sent sentPosition) {
	logs, err := p.Logs(p.ctx, []state.Partition{sent.Partition})

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
		// A newly elected leader may not know the end of its log yet.
		err = fmt.Errorf("%v: %w", pos.Partition, kafka.OffsetOutOfRange)
	}
	if err != nil {
		pos.stopped = false
		p.fail([]*position{pos}, err)
		return
	}
	p.end(pos, &OffsetOutOfRangeError{pos.Topic, pos.ID, sent.offset, held.Start, held.End})
}

// kerror turns an error code of the protocol into an error.
func kerror(code int16) error {
	switch err := kafka.Error(code); err {
	case 0:
		return nil
	case kafka.LeaderNotAvailable, kafka.NotLeaderForPartition, kafka.FencedLeaderEpoch, kafka.UnknownLeaderEpoch:
		return &leaderError{err}
	default:
		return err
	}
}

// leaderError is the error while the brokers do not agree on the leader of a partition: that of a topic that was just created,
// or of a broker that has ended.
type leaderError struct{ error }

func (e *leaderError) Unwrap() error { return e.error }

// Passing reports that they will agree.
func (*leaderError) Passing() bool { return true }
