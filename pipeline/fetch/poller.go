package fetch

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

const (
	// requestTimeout limits each request, beyond MaxWait for a fetch.
	requestTimeout = 10 * time.Second
	// leaderCheck is how often brokers are asked, a few in turn, whether they know a newer leader of a partition than
	// the one fetched from: a leader that is cut off from the others does not know that it was replaced.
	leaderCheck = 5 * time.Second
)

// fetchBackoff is how long a partition that cannot be fetched waits for the next try.
var fetchBackoff = retry.Backoff{First: 50 * time.Millisecond, Longest: 2 * time.Second}

// PollerConfig configures a Poller. Transport and Bootstrap are required; the zero value of any other field means its
// default, which stands in parentheses after its name.
type PollerConfig struct {
	// Transport carries the requests, usually a *kafka.Transport. It finds new and moved brokers each MetadataTTL,
	// which bounds how long a change of leaders takes. Name the topics in its MetadataTopics to keep its metadata
	// small.
	Transport kafka.RoundTripper
	// Bootstrap is the address of some brokers, by kafka.TCP.
	Bootstrap net.Addr

	// Pace (0) is how long after a request the next one is sent if the answer held everything available, so that the next
	// answer has more; it is sent earlier if Enough records (unlimited) are expected sooner. If the request was held for that
	// long, it counts from the answer. A leader whose answer was cut by a limit is asked again at once. So is one that had
	// nothing: it answers with the first record, or after MaxWait (500ms).
	Pace    time.Duration
	Enough  func() int
	MaxWait time.Duration
	// A broker answers with at most about MaxBytes (16 MiB), of which PartitionMaxBytes (1 MiB) are
	// of one partition. A larger batch still comes whole.
	MaxBytes          int32
	PartitionMaxBytes int32

	// Isolation is ReadCommitted by default.
	Isolation Isolation

	// MaxWaiting (1) is how many responses of one leader may wait for Poll before that leader is asked for more. So
	// memory holds at most MaxWaiting+1 responses for each leader, and what the caller has not released.
	MaxWaiting int

	// Logger is slog.Default by default.
	Logger *slog.Logger
}

func (c PollerConfig) withDefaults() PollerConfig {
	c.MaxWait = cmp.Or(c.MaxWait, 500*time.Millisecond)
	c.MaxBytes = cmp.Or(c.MaxBytes, 16<<20)
	c.PartitionMaxBytes = cmp.Or(c.PartitionMaxBytes, 1<<20)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 1)
	if c.Enough == nil {
		c.Enough = func() int { return math.MaxInt }
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Poller fetches a changing set of partitions. Each leader is served by one loop of long polls,
// whose requests include all its partitions. All methods may be called concurrently.
type Poller struct {
	cfg       PollerConfig
	exchanger exchanger
	ctx       context.Context
	cancel    context.CancelFunc
	loops     sync.WaitGroup
	ready     chan struct{} // the queue is not empty; capacity 1
	lost      chan struct{} // some partition has no leader; capacity 1

	mu        sync.Mutex
	closed    bool
	positions map[state.Partition]*position
	misplaced map[state.Partition]*misplacedError // what was wrong with the last answers
	leaders   map[int32]*leader
	queue     []*PartitionData
	troubles  retry.Trouble
}

// position is the next fetch position of a partition. It is guarded by Poller.mu.
type position struct {
	state.Partition
	offset       int64
	aligned      bool   // see sequence
	generation   uint64 // changes at every Seek; data that was fetched under an earlier one is dropped
	maxBytes     int32  // doubled while a batch does not fit
	stopped      bool   // an error was reported, and only a Seek resumes
	held         bool   // see Poller.Hold
	leader       *leader
	epoch        int32       // of the leader, -1 if unknown
	id           topicID     // of the topic that the leader was found for
	log          state.LogID // of the offset, as far as known
	fetchedEpoch int32       // the leader epoch of the record before the offset, or a later one; -1 if unknown
	applied      int64       // see Known
	appliedEpoch int32       // see Known
	retryAt      time.Time   // when to look for a leader, while there is none

	ends    logEnds
	trouble *trouble // nil while it can be fetched
}

// NewPoller returns a Poller without partitions. Close ends it.
func NewPoller(cfg PollerConfig) *Poller {
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Poller{
		cfg:       cfg,
		exchanger: exchanger{transport: cfg.Transport, bootstrap: cfg.Bootstrap, clientID: clientIDOf(cfg.Transport)},
		ctx:       ctx,
		cancel:    cancel,
		ready:     make(chan struct{}, 1),
		lost:      make(chan struct{}, 1),
		positions: make(map[state.Partition]*position),
		misplaced: make(map[state.Partition]*misplacedError),
		leaders:   make(map[int32]*leader),
		troubles:  retry.Trouble{Log: cfg.Logger, What: "fetching"},
	}
	p.loops.Go(p.findLeaders)
	p.loops.Go(p.checkLeaders)
	return p
}

// Add starts to fetch a partition from an offset about which nothing more is known. If the partition was already added,
// it is moved as by Seek.
func (p *Poller) Add(topic string, partition int32, offset int64) {
	p.Resume(topic, partition, Known{Offset: offset, Epoch: -1, LeaderEpoch: -1})
}

// Known is a position, with what is known about its log.
type Known struct {
	Offset int64
	// Epoch is the leader epoch of the record before the offset. LeaderEpoch is the epoch of the leader that confirmed
	// that it has that record. They are -1 if unknown.
	Epoch, LeaderEpoch int32
	Log                state.LogID
	// Applied is how far the partition is applied, in some part of the state, if that is further, and AppliedEpoch the leader epoch
	// of the record before that or a later one.
	Applied      int64
	AppliedEpoch int32
}

// Resume starts to fetch a partition from a position, or moves it there. Poll returns an *OtherLogError if the topic is
// not, or no longer, that log, and a *divergedError if the leader lacks records before the position, or
// that are applied.
func (p *Poller) Resume(topic string, partition int32, at Known) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := state.Partition{Topic: topic, ID: partition}
	pos := p.positions[key]
	if pos == nil {
		pos = &position{
			Partition: key,
			maxBytes:  p.cfg.PartitionMaxBytes,
			ends:      unknownEnds,
			epoch:     at.LeaderEpoch,
			trouble:   &trouble{retries: fetchBackoff, err: ErrNotYetFetched, since: time.Now()},
		}
		p.positions[key] = pos
		signal(p.lost)
	}
	pos.log, pos.applied, pos.appliedEpoch = at.Log, at.Applied, at.AppliedEpoch
	p.seek(pos, at.Offset, at.Epoch)
}

// Reach notes that a partition turned out to be applied further than it is fetched: up to an offset, of a leader epoch.
func (p *Poller) Reach(topic string, partition int32, applied int64, epoch int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pos := p.positions[state.Partition{Topic: topic, ID: partition}]; pos != nil {
		pos.applied, pos.appliedEpoch = max(pos.applied, applied), max(pos.appliedEpoch, epoch)
	}
}

// needs returns up to where a new leader must have the log of a position, and the epoch of the record before that or a
// later one, -1 if unknown: what is applied and not yet fetched would not be missed if other records had replaced it.
func (pos *position) needs() (until int64, epoch int32) {
	if pos.applied > pos.offset {
		return pos.applied, max(pos.appliedEpoch, pos.fetchedEpoch)
	}
	return pos.offset, pos.fetchedEpoch
}

// Seek moves a partition to offset. Poll no longer returns anything fetched before. It has no effect on a partition
// that was not added.
func (p *Poller) Seek(topic string, partition int32, offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pos := p.positions[state.Partition{Topic: topic, ID: partition}]; pos != nil {
		p.seek(pos, offset, -1)
	}
}

func (p *Poller) seek(pos *position, offset int64, epoch int32) {
	pos.offset, pos.aligned, pos.fetchedEpoch = offset, false, epoch
	pos.generation++
	pos.stopped = false
	if pos.leader != nil {
		pos.leader.interrupt()
	}
}

// Hold stops or resumes asking for more of a partition. What was fetched, or asked for, is returned by Poll nevertheless. It has no
// effect on a partition that was not added.
func (p *Poller) Hold(topic string, partition int32, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pos := p.positions[state.Partition{Topic: topic, ID: partition}]
	if pos == nil {
		return
	}
	pos.held = held
	if !held && pos.leader != nil {
		signal(pos.leader.wake)
	}
}

// Remove stops fetching a partition. Poll no longer returns anything of it.
func (p *Poller) Remove(topic string, partition int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := state.Partition{Topic: topic, ID: partition}
	if pos := p.positions[key]; pos != nil {
		p.detach(pos)
		delete(p.positions, key)
		p.endTrouble()
	}
}

// Poll returns the next data fetched, of any partition, in order of arrival, and waits for it if necessary. Its error
// is a PositionError, errClosed, or the context's. Unavailable brokers and moving leaders are not errors: Poll waits,
// and Troubles lists them.
func (p *Poller) Poll(ctx context.Context) (*PartitionData, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part, err := p.Take()
		if part != nil || err != nil {
			return part, err
		}
		select {
		case <-p.ready:
		case <-p.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// Ready receives when Take may return something. It is for one receiver, which calls Take until it
// returns nothing.
func (p *Poller) Ready() <-chan struct{} { return p.ready }

// Take is Poll without the wait: it returns nil if nothing was fetched.
func (p *Poller) Take() (*PartitionData, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	for len(p.queue) > 0 {
		part := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		if r := part.response; r != nil {
			if r.queued--; r.queued == 0 {
				r.leader.taken()
			}
		}
		if p.wanted(part) {
			if len(p.queue) > 0 {
				signal(p.ready) // for another receiver
			}
			return part, part.err
		}
		part.Release()
	}
	select {
	case <-p.ready: // of what was taken meanwhile
	default:
	}
	return nil, nil
}

// Current reports whether the result of Poll is still the next data of its partition. It is not if the partition was
// moved or removed since: a caller that polls in one goroutine and seeks in another may hold such data, and must drop
// it.
func (p *Poller) Current(part *PartitionData) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted(part)
}

func (p *Poller) wanted(part *PartitionData) bool {
	return p.positions[part.key()] == part.pos && part.pos.generation == part.generation
}

// Close ends all requests and waits for the loops to end. Poll then returns errClosed. The Transport stays open.
func (p *Poller) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.loops.Wait()
}

// signal wakes the receiver that waits on c, now or when it next waits.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
