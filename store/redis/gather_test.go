package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// gate lets pipelines through one by one, and reports their lengths.
type gate struct {
	arrived chan int
	pass    chan struct{}
}

func (g gate) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("there is no server") }
}

func (g gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (g gate) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		g.arrived <- len(cmds)
		<-g.pass
		for _, c := range cmds {
			c.(*redis.StringCmd).SetVal(fmt.Sprint(c.Args()[1]))
		}
		return nil
	}
}

// While pipelines are under way, callers gather; each gets its own replies, and one that gives up
// does not affect the others.
func TestConcurrentReadsShareAPipeline(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	held := gate{arrived: make(chan int), pass: make(chan struct{})}
	client.AddHook(held)
	g := &newMasters(client).only.reads
	ask := func(ctx context.Context, key string) ([]redis.Cmder, error) {
		commands := []redis.Cmder{redis.NewStringCmd(ctx, "get", key), redis.NewStringCmd(ctx, "get", key+"!")}
		_, err := g.do(commands).wait(ctx)
		return commands, err
	}
	var callers sync.WaitGroup
	call := func(key string) {
		callers.Go(func() {
			commands, err := ask(context.Background(), key)
			if err != nil || commands[0].(*redis.StringCmd).Val() != key || commands[1].(*redis.StringCmd).Val() != key+"!" {
				t.Errorf("%s: %v, %v", key, commands, err)
			}
		})
	}
	for i := range maxPipelines {
		call(fmt.Sprint("at once ", i))
		if n := <-held.arrived; n != 2 {
			t.Errorf("the first pipelines have %d commands, want 2", n)
		}
	}
	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ask(impatient, "impatient"); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller whose context ends got %v, want context.Canceled", err)
	}
	const more = maxGathered // of two commands each: two more gatherings
	for i := range more {
		call(fmt.Sprint("later ", i))
	}
	gathered := func() (n int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, q := range g.queue {
			n += len(q.commands)
		}
		return n
	}
	for gathered() < 2+2*more {
		runtime.Gosched() // until all have come
	}
	var sizes []int
	callers.Go(func() {
		for range 3 {
			sizes = append(sizes, <-held.arrived)
		}
	})
	for range maxPipelines + 3 {
		held.pass <- struct{}{}
	}
	callers.Wait()
	slices.Sort(sizes) // they are under way at the same time
	if want := []int{2, maxGathered, maxGathered}; fmt.Sprint(sizes) != fmt.Sprint(want) {
		t.Errorf("the waiting reads were sent in pipelines of %v, want %v", sizes, want)
	}
	for free := false; !free; runtime.Gosched() {
		g.mu.Lock()
		free = g.busy == 0 && len(g.queue) == 0
		g.mu.Unlock()
	}
}
