package redisstore

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
)

// gatherer sends the commands of several callers in one pipeline. While pipelines are under way, or replies are being
// processed, new commands gather and are then sent together. A single caller does not wait; many share the cost of a
// round trip.
type gatherer struct {
	// exec sends commands, and returns for each how fresh its reply is; nil means that the master answered all.
	exec func(ctx context.Context, commands []redis.Cmder) []state.Freshness

	mu    sync.Mutex
	busy  int // pipelines under way, at most maxPipelines
	queue []*gathering
}

// gathering is the commands that are sent together.
type gathering struct {
	commands  []redis.Cmder
	freshness []state.Freshness // by command, valid once done is closed; or nil, see exec
	done      chan struct{}     // closed when all have their replies
}

// maxGathered bounds the commands of one pipeline, so that small questions do not wait long for
// others.
const maxGathered = 512

// maxPipelines is how many pipelines may be under way: one for each core that processes replies.
var maxPipelines = runtime.GOMAXPROCS(0)

// gathered identifies the commands of one caller in a gathering.
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
	if n := len(g.queue); n > 0 && len(g.queue[n-1].commands)+len(commands) <= maxGathered {
		last := g.queue[n-1]
		from = len(last.commands)
		last.commands = append(last.commands, commands...)
		return last, from
	}
	own := &gathering{commands: commands, done: make(chan struct{})}
	g.queue = append(g.queue, own)
	if g.busy < maxPipelines {
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
		// The client's own timeouts apply: no caller's deadline may end the commands of others.
		next.freshness = g.exec(context.Background(), next.commands)
		close(next.done)
	}
}

// next returns the next gathering to send. If there is none, it returns nil and frees the slot.
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

// A pipeline has one deadline for all of its replies, and when it has passed, the master counts as one that does not
// answer. So pipelines are bounded: whether a server is in time must not depend on how much it is asked. A full batch
// takes one that is not busy some tenths of a second, and each worker may have one under way.
const (
	// maxCost bounds the cost of a pipeline: one for a command, and longCost for one with more than fewArgs arguments,
	// such as a script call of up to 1,500 mutations, which takes a server a millisecond or two.
	maxCost  = 1024
	longCost = 32
	fewArgs  = 64
)

// costOf returns the cost of a command.
func costOf(c redis.Cmder) int {
	if len(c.Args()) > fewArgs {
		return longCost
	}
	return 1
}

// pipelines cuts commands into pipelines.
func pipelines(commands []redis.Cmder) iter.Seq[[]redis.Cmder] {
	return func(yield func([]redis.Cmder) bool) {
		first, sum := 0, 0
		for i, c := range commands {
			cost := costOf(c)
			if i > first && sum+cost > maxCost {
				if !yield(commands[first:i]) {
					return
				}
				first, sum = i, 0
			}
			sum += cost
		}
		if first < len(commands) {
			yield(commands[first:])
		}
	}
}

func pipeline(ctx context.Context, client redis.UniversalClient, commands []redis.Cmder) {
	pipe := client.Pipeline()
	for _, c := range commands {
		_ = pipe.Process(ctx, c)
	}
	_, _ = pipe.Exec(ctx)
}

// pipelineOnce is a pipeline whose commands a cluster's client repeats only if they are redirected. Otherwise the
// client sends all commands of a node again if the first one's error is temporary (TRYAGAIN) or if there is no answer,
// and, in v9.23.0, then sends redirected commands twice at the same time. Every command is marked, since any of them
// may be redirected to a node.
func pipelineOnce(ctx context.Context, client *redis.ClusterClient, commands []redis.Cmder) {
	marked, once := make([]redis.Cmder, len(commands)), make([]sentOnce, len(commands))
	for i, c := range commands {
		once[i].Cmder = c
		marked[i] = &once[i]
	}
	pipeline(ctx, client, marked)
}

// sentOnce marks a command whose pipeline a client must not send again.
type sentOnce struct{ redis.Cmder }

func (*sentOnce) NoRetry() bool { return true }

// unanswered reports whether an error is not a server's answer.
func unanswered(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, state.ErrUnavailable) {
		return false
	}
	_, answer := errors.AsType[redis.Error](err)
	return !answer
}

// loading reports whether a server refuses everything, probes too, until it has loaded its data.
func loading(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "LOADING ") }

// passing reports whether an error is temporary: the server, or another one, will soon serve the key, because it is
// loading its data, the slot is moving and the masters do not agree who has it, or the cluster lacks slots.
func passing(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return slices.ContainsFunc([]string{"LOADING ", "TRYAGAIN ", "MOVED ", "ASK ", "CLUSTERDOWN ", "MASTERDOWN "},
		func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}
