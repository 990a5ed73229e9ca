package store

import (
	"context"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"
)

// gatherer sends the commands of several callers in one pipeline: while some are
// under way, those that come meanwhile gather, and go together when it is their
// turn. A caller alone waits for nobody; many share the price of a round trip.
type gatherer struct {
	redis redis.UniversalClient

	mu    sync.Mutex
	busy  int // pipelines under way, mostPipelines at the most
	queue []*gathering
}

// gathering is what goes together.
type gathering struct {
	commands []redis.Cmder
	done     chan struct{} // closed when all have their replies
}

// mostGathered bounds the commands of one pipeline, so that those who ask for
// little do not wait long for others.
const mostGathered = 512

// mostPipelines is how many may be under way: as many as there are cores to work
// on their replies.
var mostPipelines = runtime.GOMAXPROCS(0)

// do sends commands, and waits until each has its reply or its error. Its own
// error is that of the context.
func (g *gatherer) do(ctx context.Context, commands []redis.Cmder) error {
	own := g.add(commands)
	select {
	case <-own.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add finds what the commands go with.
func (g *gatherer) add(commands []redis.Cmder) *gathering {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.queue); n > 0 && len(g.queue[n-1].commands)+len(commands) <= mostGathered {
		last := g.queue[n-1]
		last.commands = append(last.commands, commands...)
		return last
	}
	own := &gathering{commands: commands, done: make(chan struct{})}
	if g.busy < mostPipelines {
		g.busy++
		go g.send(own)
		return own
	}
	g.queue = append(g.queue, own)
	return own
}

// send sends one gathering after the other until none waits.
func (g *gatherer) send(next *gathering) {
	for next != nil {
		// The client's own timeouts bound it: no caller's deadline may end what
		// others wait for.
		ctx := context.Background()
		pipe := g.redis.Pipeline()
		for _, c := range next.commands {
			_ = pipe.Process(ctx, c)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		close(next.done)
		next = g.next()
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
