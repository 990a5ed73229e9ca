package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/integration_test/faults/servers"
)

// session draws the rounds of a run, and reports them. It is safe for concurrent use.
type session struct {
	bounds  bounds
	drawing drawing
	asked   context.Context // ends when no further round is to begin
	began   time.Time

	mu    sync.Mutex
	seeds func() uint64
	begun int
	out   *json.Encoder
	all   summary
	err   error // the first of drawing and reporting
}

// next draws the next round; nil if no further one begins.
func (s *session) next() (p *scenario) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.asked.Err() != nil || s.bounds.over(s.begun, time.Since(s.began)) {
		return nil
	}
	if p, s.err = s.drawing.next(s.seeds); s.err != nil {
		return nil
	}
	s.begun++
	return p
}

// report writes the result of a round, and adds it to the summary.
func (s *session) report(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.add(r)
	if err := s.out.Encode(r); err != nil && s.err == nil {
		s.err = err
	}
}

// trials are rounds that are played one after the other, and the servers that they share.
type trials struct {
	binary string
	keep   bool
	kit    *servers.Kit // of the servers

	mu      sync.Mutex
	round   *round // in progress
	broker  *servers.Broker
	cluster *servers.Cluster
	ignite  *servers.Ignite
}

func newTrials(binary string, keep bool) *trials {
	redis.SetLogger(silent{}) // failovers are expected
	t := &trials{binary: binary, keep: keep}
	t.kit = t.newKit()
	return t
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// newKit returns a kit that reports its failures to the current round.
func (t *trials) newKit() *servers.Kit {
	return servers.NewKit("servers", func(message string) {
		t.mu.Lock()
		r := t.round
		t.mu.Unlock()
		r.failure(message)
	})
}

// play plays the round. After a failed round, the next one gets new servers.
func (t *trials) play(p *scenario) result {
	began := time.Now()
	r := newRound(t, p)
	t.mu.Lock()
	t.round = r
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.over.Store(true)
		r.play()
	}()
	<-done
	res := r.result()
	res.Seconds = float64(time.Since(began).Round(100*time.Millisecond)) / float64(time.Second)
	failed := len(res.Failures) > 0
	r.kit.Close(t.keep && failed)
	if failed {
		t.close(t.keep)
	}
	return res
}

// close stops the servers and removes their files unless keep is set.
func (t *trials) close(keep bool) {
	t.kit.Close(keep)
	t.kit, t.broker, t.cluster, t.ignite = t.newKit(), nil, nil, nil
}

// kafka returns the broker of all rounds.
func (t *trials) kafka() *servers.Broker {
	if t.broker == nil {
		t.broker = servers.NewBroker(t.kit)
	}
	return t.broker
}

// redis returns the Redis of a round.
func (t *trials) redis(r *round) servers.Redis {
	switch r.scenario.Topology {
	case "sentinel":
		return servers.NewSentinel(r.kit, r.random("redis").IntN(2) == 0)
	case "cluster":
		if t.cluster == nil {
			t.cluster = servers.NewCluster(t.kit)
		}
		t.cluster.Empty(r.kit)
		return t.cluster
	default:
		return servers.NewSingle(r.kit, r.random("redis").IntN(3) > 0)
	}
}

// ignited returns the nodes of Ignite of all rounds, which all work.
func (t *trials) ignited(k *servers.Kit) *servers.Ignite {
	if t.ignite == nil {
		t.ignite = servers.NewIgnite(t.kit)
	}
	t.ignite.AwaitCopies(k)
	return t.ignite
}
