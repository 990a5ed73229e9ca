package main

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
)

// trials are the rounds of a run, and the servers that are used for more than one of them.
type trials struct {
	binary string
	keep   bool
	kit    *kit // of the servers

	mu      sync.Mutex
	round   *round // that is played
	broker  *broker
	cluster *cluster
}

func newTrials(binary string, keep bool) *trials {
	redis.SetLogger(silent{}) // failovers are no news here
	t := &trials{binary: binary, keep: keep}
	t.kit = t.newKit()
	return t
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// newKit is a kit whose failures are those of the round that is played.
func (t *trials) newKit() *kit {
	return newKit("servers", func(message string) {
		t.mu.Lock()
		r := t.round
		t.mu.Unlock()
		r.failure(message)
	})
}

// play plays a round. After one that failed, the next has servers of its own.
func (t *trials) play(p *plan) result {
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
	r.kit.close(t.keep && failed)
	if failed {
		t.close(t.keep)
	}
	return res
}

// close ends the servers, and takes their files away unless they are to be kept.
func (t *trials) close(keep bool) {
	t.kit.close(keep)
	t.kit, t.broker, t.cluster = t.newKit(), nil, nil
}

// kafka is the broker of all rounds.
func (t *trials) kafka() *broker {
	if t.broker == nil {
		t.broker = newBroker(t.kit)
	}
	return t.broker
}

// redis is the Redis of a round.
func (t *trials) redis(r *round) redisSide {
	switch r.plan.Topology {
	case "sentinel":
		return newSentinel(r.kit, r.random("redis"))
	case "cluster":
		if t.cluster == nil {
			t.cluster = newCluster(t.kit)
		}
		t.cluster.begin(r.kit)
		return t.cluster
	default:
		return newSingle(r.kit, r.random("redis"))
	}
}

// wait waits until a condition holds, and fails the round if it does not in time.
func wait(k *kit, most time.Duration, what string, condition func() (bool, string)) {
	testkit.Eventually(k, most, what, condition)
}
