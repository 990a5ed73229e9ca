package redisstore

import (
	"context"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
)

// gatherer sends the commands of several callers in one pipeline: while some are
// under way, or others still have to be worked on, those that come meanwhile
// gather, and go together when it is their turn. A caller alone waits for nobody;
// many share the price of a round trip.
type gatherer struct {
	// pass sends commands, and tells of each where it was answered; nil says that
	// all were by the master.
	pass func(ctx context.Context, commands []redis.Cmder) []state.Freshness

	mu    sync.Mutex
	busy  int // pipelines under way, mostPipelines at the most
	queue []*gathering
}

// gathering is what goes together.
type gathering struct {
	commands  []redis.Cmder
	freshness []state.Freshness // by command, once done is closed; or nil, see pass
	done      chan struct{}     // closed when all have their replies
}

// mostGathered bounds the commands of one pipeline, so that those who ask for
// little do not wait long for others.
const mostGathered = 512

// mostPipelines is how many may be under way: as many as there are cores to work
// on their replies.
var mostPipelines = runtime.GOMAXPROCS(0)

// gathered are commands of one caller on their way.
type gathered struct {
	with     *gathering
	from, to int // their places in it
}

// do takes commands on their way, to be waited for.
func (g *gatherer) do(commands []redis.Cmder) gathered {
	n := len(commands)
	with, from := g.add(commands)
	return gathered{with, from, from + n}
}

// wait waits until each command has its reply or its error. Its own error is that
// of the context.
func (d gathered) wait(ctx context.Context) (f state.Freshness, err error) {
	select {
	case <-d.with.done:
	case <-ctx.Done():
		return f, ctx.Err()
	}
	if d.with.freshness == nil {
		return f, nil
	}
	for _, other := range d.with.freshness[d.from:d.to] {
		f = f.With(other)
	}
	return f, nil
}

// add finds what the commands go with, and the place of the first in it.
func (g *gatherer) add(commands []redis.Cmder) (with *gathering, from int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.queue); n > 0 && len(g.queue[n-1].commands)+len(commands) <= mostGathered {
		last := g.queue[n-1]
		from = len(last.commands)
		last.commands = append(last.commands, commands...)
		return last, from
	}
	own := &gathering{commands: commands, done: make(chan struct{})}
	g.queue = append(g.queue, own)
	if g.busy < mostPipelines {
		g.busy++
		go g.send()
	}
	return own, 0
}

// send sends one gathering after the other until none waits.
func (g *gatherer) send() {
	for {
		// Those who are about to ask do so first: it takes no time where nobody is.
		runtime.Gosched()
		next := g.next()
		if next == nil {
			return
		}
		// The client's own timeouts bound it: no caller's deadline may end what
		// others wait for.
		next.freshness = g.pass(context.Background(), next.commands)
		close(next.done)
	}
}

// next is what goes next, nil for nothing: the place is free then.
func (g *gatherer) next() *gathering {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.busy--
		return nil
	}
	first := g.queue[0]
	g.queue = g.queue[1:]
	return first
}
