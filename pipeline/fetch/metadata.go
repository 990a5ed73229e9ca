package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// findLeaders is the loop that gives a leader to each position that has none: one that was added, or one whose
// leader failed or moved.
func (p *Poller) findLeaders() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for p.ctx.Err() == nil {
		topics, wait := p.leaderless(time.Now())
		if len(topics) == 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-p.lost:
			case <-p.ctx.Done():
			}
			continue
		}
		p.assign(topics)
	}
}

// leaderless lists the topics of the positions that want a leader now, or how long to wait until one does.
func (p *Poller) leaderless(now time.Time) (topics []string, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = time.Hour
	for _, pos := range p.positions {
		if pos.leader != nil {
			continue
		}
		if left := pos.retryAt.Sub(now); left > 0 {
			wait = min(wait, left)
		} else if !slices.Contains(topics, pos.topic) {
			topics = append(topics, pos.topic)
		}
	}
	return topics, wait
}

// assign asks for the leaders of topics and hands their positions over.
func (p *Poller) assign(topics []string) {
	found, err := p.metadata(p.ctx, topics)

	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, pos := range p.positions {
		if pos.leader != nil || pos.retryAt.After(now) || !slices.Contains(topics, pos.topic) {
			continue
		}
		if err != nil {
			p.fail([]*position{pos}, err)
		} else if at, err := found.leader(pos.topicPartition); err != nil {
			p.fail([]*position{pos}, err)
		} else {
			p.attach(pos, at)
		}
	}
}

// attach gives a position to the loop of its leader. Poller.mu is held.
func (p *Poller) attach(pos *position, at leadership) {
	l := p.leaders[at.broker]
	if l == nil {
		l = &leader{id: at.broker, wake: make(chan struct{}, 1)}
		p.leaders[at.broker] = l
		p.loops.Go(func() { p.lead(l) })
	}
	pos.leader, pos.epoch, pos.id = l, at.epoch, at.topicID
	l.positions = append(l.positions, pos)
	l.interrupt()
}

// detach takes a position away from its leader. Poller.mu is held.
func (p *Poller) detach(pos *position) {
	l := pos.leader
	if l == nil {
		return
	}
	pos.leader = nil
	l.positions = slices.DeleteFunc(l.positions, func(q *position) bool { return q == pos })
	signal(l.wake)
}

// leadership is who leads a partition.
type leadership struct {
	broker  int32
	epoch   int32 // of the leader, -1 if unknown
	topicID topicID
}

// leaderships is what the brokers know about the leaders of some topics' partitions.
type leaderships struct {
	leaders map[topicPartition]leadership
	errs    map[topicPartition]error
	topics  map[string]error // those that are in error as a whole
}

func (ls leaderships) leader(key topicPartition) (leadership, error) {
	at, ok := ls.leaders[key]
	if ok {
		return at, nil
	}
	err := cmp.Or(ls.topics[key.topic], ls.errs[key], errNoPartition)
	return at, fmt.Errorf("%s/%d: %w", key.topic, key.partition, err)
}

var errNoPartition = errors.New("there is no such partition")

// metadata asks for the leaders of all partitions of topics.
func (p *Poller) metadata(ctx context.Context, topics []string) (leaderships, error) {
	found := leaderships{
		leaders: make(map[topicPartition]leadership),
		errs:    make(map[topicPartition]error),
		topics:  make(map[string]error),
	}
	req := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &topic
		req.Topics = append(req.Topics, t)
	}
	kresp, err := p.exchanger.do(ctx, p.cfg.RequestTimeout, anyBroker, req, 0, new([]byte))
	if err != nil {
		return found, fmt.Errorf("fetch: metadata: %w", err)
	}
	for _, t := range kresp.(*kmsg.MetadataResponse).Topics {
		if t.Topic == nil {
			continue
		}
		if err := kerror(t.ErrorCode); err != nil {
			found.topics[*t.Topic] = err
		}
		for _, part := range t.Partitions {
			key := topicPartition{*t.Topic, part.Partition}
			// What else may be wrong, as with an offline replica, does not keep a partition with a leader from being read.
			if part.Leader >= 0 {
				found.leaders[key] = leadership{part.Leader, part.LeaderEpoch, t.TopicID}
			} else {
				found.errs[key] = cmp.Or(kerror(part.ErrorCode), error(kafka.LeaderNotAvailable))
			}
		}
	}
	return found, nil
}
