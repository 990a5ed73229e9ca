package redisstore

import (
	"context"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
)

// gatherer sends the commands of several callers in one pipeline: while some are under way, or
// replies are being processed, new commands gather and are sent together in turn. A single caller
// does not wait; many share the cost of a round trip.
type gatherer struct {
	// pass sends commands, and says for each from where it was answered; nil means all by the
	// master.
	pass func(ctx context.Context, commands []redis.Cmder) []state.Freshness

	mu    sync.Mutex
	busy  int // pipelines under way, at most mostPipelines
	queue []*gathering
}

// gathering is what is sent together.
type gathering struct {
	commands  []redis.Cmder
	freshness []state.Freshness // by command, valid once done is closed; or nil, see pass
	done      chan struct{}     // closed when all have their replies
}

// mostGathered bounds the commands of one pipeline, so that small questions do not wait long for
// others.
const mostGathered = 512

// mostPipelines is how many may be under way: one for each core that processes replies.
var mostPipelines = runtime.GOMAXPROCS(0)

// gathered are the commands of one caller in a gathering.
type gathered struct {
	with     *gathering
	from, to int // their places in it
}

// do sends commands; wait waits for them.
func (g *gatherer) do(commands []redis.Cmder) gathered {
	n := len(commands)
	with, from := g.add(commands)
	return gathered{with, from, from + n}
}

// wait waits until each command has its reply or its error. Its own error is that of the context.
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

// add finds the gathering for the commands, and the index of the first in it.
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

// send sends gatherings until none is waiting.
func (g *gatherer) send() {
	for {
		// Callers that are about to ask go first: it costs nothing if there are none.
		runtime.Gosched()
		next := g.next()
		if next == nil {
			return
		}
		// The client's own timeouts apply: no caller's deadline may end what others wait for.
		next.freshness = g.pass(context.Background(), next.commands)
		close(next.done)
	}
}

// next is the next gathering to send, nil for none: the slot is then free.
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

func pipeline(ctx context.Context, client redis.UniversalClient, commands []redis.Cmder) {
	pipe := client.Pipeline()
	for _, c := range commands {
		_ = pipe.Process(ctx, c)
	}
	_, _ = pipe.Exec(ctx)
}

// pipelineOnce is a pipeline whose commands a cluster's client repeats only if they are redirected. It
// otherwise sends all commands of a node again if the first one's error may pass (TRYAGAIN) or there
// is no answer, and with that, in v9.23.0, sends redirected ones twice at the same time. Every
// command is marked, since a node may be sent any of them, redirected.
func pipelineOnce(ctx context.Context, client *redis.ClusterClient, commands []redis.Cmder) {
	marked, once := make([]redis.Cmder, len(commands)), make([]sentOnce, len(commands))
	for i, c := range commands {
		once[i].Cmder = c
		marked[i] = &once[i]
	}
	pipeline(ctx, client, marked)
}

// sentOnce is a command with which a client sends no pipeline again.
type sentOnce struct{ redis.Cmder }

func (*sentOnce) NoRetry() bool { return true }
