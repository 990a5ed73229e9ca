package fetch

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/state"
)

// findLeaders is the loop that finds a leader for each position that has none: one that was added,
// or one whose leader failed or moved.
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

// leaderless lists the topics of the positions that need a leader now, or how long to wait until
// one does.
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
		} else if !slices.Contains(topics, pos.Topic) {
			topics = append(topics, pos.Topic)
		}
	}
	return topics, wait
}

// assign asks for the leaders of topics and attaches their positions.
func (p *Poller) assign(topics []string) {
	found, err := p.metadata(p.ctx, AnyBroker, topics)
	var unsure []unverified

	p.mu.Lock()
	now := time.Now()
	for _, pos := range p.positions {
		if pos.leader != nil || pos.retryAt.After(now) || !slices.Contains(topics, pos.Topic) {
			continue
		}
		if err != nil {
			p.fail([]*position{pos}, err)
		} else if at, err := found.leader(pos.Partition); err != nil {
			p.fail([]*position{pos}, err)
		} else if at.epoch < pos.epoch && at.topicID == pos.id && pos.id != (topicID{}) {
			p.fail([]*position{pos}, fmt.Errorf("%v: the brokers name a leader of epoch %d, and one of epoch %d is known", pos.Partition, at.epoch, pos.epoch))
		} else if log := found.logs[pos.Topic]; pos.log.Contradicts(log) {
			p.attach(pos, at)
			p.end(pos, &OtherLogError{pos.Topic, pos.ID, pos.log, log})
		} else if until, epoch := pos.needs(); epoch >= 0 && at.epoch != pos.epoch {
			unsure = append(unsure, unverified{pos, pos.generation, pos.offset, until, epoch, at})
		} else {
			p.attach(pos, at)
		}
	}
	p.mu.Unlock()
	p.verify(unsure)
}

// unverified is a position with a new leader, which may lack what was fetched.
type unverified struct {
	*position
	generation uint64
	offset     int64
	until      int64 // see position.needs
	epoch      int32 // see position.needs
	at         leadership
}

// verify asks new leaders whether they have the records that were fetched from the earlier ones or are applied, and
// attaches the positions. A position keeps its leader if the new one does not answer.
func (p *Poller) verify(unsure []unverified) {
	if len(unsure) == 0 {
		return
	}
	queries := make([]EpochQuery, len(unsure))
	for i, u := range unsure {
		queries[i] = EpochQuery{u.Partition, u.at.broker, u.at.epoch, u.epoch}
	}
	ends := p.EpochEnds(p.ctx, queries)

	p.mu.Lock()
	defer p.mu.Unlock()
	for i, u := range unsure {
		pos := u.position
		if p.positions[pos.Partition] != pos || pos.generation != u.generation {
			continue // moved or removed meanwhile; if moved, it is handled again
		}
		if pos.leader != nil && (u.at.epoch <= pos.epoch || pos.offset != u.offset) {
			continue // it got this leader or a newer one meanwhile, or it moved, so that the answer is outdated
		}
		if ends[i].Err != nil {
			if pos.leader == nil {
				p.fail([]*position{pos}, ends[i].Err)
			}
			continue
		}
		p.attach(pos, u.at)
		if end := ends[i]; end.Offset >= 0 {
			p.follow(pos, u.until, u.epoch, end)
		}
	}
}

// follow goes on in the log of a leader that has told where the last epoch up to one ends, or ends the position if the log was
// truncated before an offset. An earlier epoch alone is no sign of that: that of the position may be later than its record's, see
// state.Position. Poller.mu is held.
func (p *Poller) follow(pos *position, until int64, epoch int32, end EpochEnd) {
	if end.Offset < until {
		p.end(pos, &divergedError{pos.Topic, pos.ID, until, epoch, end.Offset, end.Epoch})
		return
	}
	pos.fetchedEpoch = min(pos.fetchedEpoch, end.Epoch)
}

// end queues an error after which the position must be added again. Poller.mu is held.
func (p *Poller) end(pos *position, err error) {
	pos.stopped = true
	p.recover(pos)
	p.queue = append(p.queue, &PartitionData{
		Topic: pos.Topic, Partition: pos.ID, pos: pos, generation: pos.generation, err: err,
	})
	signal(p.ready)
}

// attach gives a position to the loop of its leader. Poller.mu is held.
func (p *Poller) attach(pos *position, at leadership) {
	p.detach(pos)
	l := p.leaders[at.broker]
	if l == nil {
		l = &leader{id: at.broker, wake: make(chan struct{}, 1)}
		p.leaders[at.broker] = l
		p.loops.Go(func() { p.fetchLoop(l) })
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

// leadership is the leader of a partition.
type leadership struct {
	broker  int32
	epoch   int32 // of the leader, -1 if unknown
	topicID topicID
}

// leaderships are the leaders of some topics' partitions, according to the brokers.
type leaderships struct {
	leaders map[state.Partition]leadership
	errs    map[state.Partition]error
	topics  map[string]error // topics that failed as a whole

	logs       map[string]state.LogID // by topic
	partitions map[string]int         // their number, by topic
	brokers    []int32                // of the cluster, sorted
}

func (ls leaderships) leader(key state.Partition) (leadership, error) {
	at, ok := ls.leaders[key]
	if ok {
		return at, nil
	}
	err := cmp.Or(ls.topics[key.Topic], ls.errs[key], errNoPartition)
	return at, fmt.Errorf("%v: %w", key, err)
}

var errNoPartition = errors.New("there is no such partition")

// metadata asks a broker for the leaders of all partitions of topics.
func (p *Poller) metadata(ctx context.Context, broker int32, topics []string) (leaderships, error) {
	found := leaderships{
		leaders: make(map[state.Partition]leadership),
		errs:    make(map[state.Partition]error),
		topics:  make(map[string]error),

		logs:       make(map[string]state.LogID),
		partitions: make(map[string]int),
	}
	req := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &topic
		req.Topics = append(req.Topics, t)
	}
	kresp, err := p.exchanger.do(ctx, requestTimeout, broker, req, 0, new([]byte))
	if err != nil {
		return found, fmt.Errorf("fetch: metadata: %w", err)
	}
	response := kresp.(*kmsg.MetadataResponse)
	for _, b := range response.Brokers {
		found.brokers = append(found.brokers, b.NodeID)
	}
	slices.Sort(found.brokers)
	for _, t := range response.Topics {
		if t.Topic == nil {
			continue
		}
		found.logs[*t.Topic] = logID(response.ClusterID, t.TopicID)
		found.partitions[*t.Topic] = len(t.Partitions)
		if err := kerror(t.ErrorCode); err != nil {
			found.topics[*t.Topic] = err
		}
		for _, part := range t.Partitions {
			key := state.Partition{Topic: *t.Topic, ID: part.Partition}
			// Other errors, such as an offline replica, do not prevent reading a partition that has
			// a leader.
			if part.Leader >= 0 {
				found.leaders[key] = leadership{part.Leader, part.LeaderEpoch, t.TopicID}
			} else {
				found.errs[key] = kerror(cmp.Or(part.ErrorCode, int16(kafka.LeaderNotAvailable)))
			}
		}
	}
	return found, nil
}

// logID identifies a topic's log, as far as brokers report it.
func logID(cluster *string, topic topicID) (id state.LogID) {
	if cluster != nil {
		id.Cluster = *cluster
	}
	if topic != (topicID{}) {
		id.Topic = base64.RawURLEncoding.EncodeToString(topic[:])
	}
	return id
}
