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

	"github.com/weir-stream/weir/state"
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
	t.Parallel()
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

// pipelineCosts notes the greatest cost of a pipeline.
type pipelineCosts struct {
	mu       sync.Mutex
	greatest int
}

func (*pipelineCosts) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*pipelineCosts) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelineCosts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		cost := 0
		for _, c := range commands {
			cost += costOf(c)
		}
		p.mu.Lock()
		p.greatest = max(p.greatest, cost)
		p.mu.Unlock()
		return next(ctx, commands)
	}
}

// The calls of a long batch, the reads of one whose events are enriched, and those of a long question need not all be
// answered within the same deadline: a server that is only slow would count as one that does not answer, and the reads
// would never succeed.
func TestLongBatchesHaveSeveralDeadlines(t *testing.T) {
	t.Parallel()
	onEach(t, 32, func(t *testing.T, s *Store) {
		s.callMutations = 1
		start(t, s, transactions)
		b := begin(t, s, transactions)
		b.Series = allSeries
		var reads []state.Read
		for i := range int64(4 * maxCost) {
			device := fmt.Sprint("d", i)
			b.Update(0, i, []byte(device))
			b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
			b.Ranges[0].To = i + 1
			reads = append(reads, state.Read{Series: events, Entity: device, First: 100, Last: 100})
		}
		sent := &pipelineCosts{}
		s.redis.AddHook(sent)
		apply(t, s.newWriter(), b)
		if b.Calls <= maxCost || sent.greatest > maxCost {
			t.Errorf("of %d calls up to %d are in one pipeline, want no more than %d", b.Calls, sent.greatest, maxCost)
		}
		f, err := s.Snapshot(t.Context(), reads)
		if err != nil {
			t.Fatal(err)
		}
		if sent.greatest > maxCost {
			t.Errorf("%d reads are in one pipeline, want no more than %d", sent.greatest, maxCost)
		}
		if _, err := s.Read(t.Context(), reads); err != nil || sent.greatest > maxCost {
			t.Errorf("of a question, %d reads are in one pipeline, want no more than %d (%v)", sent.greatest, maxCost, err)
		}
		for i := range reads {
			if got := f.Read(&reads[i]); got.Err != nil || len(got.Buckets) != 1 || got.Buckets[0].Value.Num != 1 {
				t.Fatalf("%s: got %+v, want 1 event", reads[i].Entity, got)
			}
		}
	})
}

// Commands are cut into pipelines by their number and their arguments.
func TestPipelines(t *testing.T) {
	t.Parallel()
	const long = maxCost / longCost // calls in a pipeline
	for _, c := range []struct {
		args []int
		want []int // commands
	}{
		{nil, nil},
		{[]int{2, 2, 2}, []int{3}},
		{slices.Repeat([]int{2}, maxCost), []int{maxCost}},
		{slices.Repeat([]int{2}, 2*maxCost+1), []int{maxCost, maxCost, 1}},
		{slices.Repeat([]int{fewArgs + 1}, long+1), []int{long, 1}},
		{append(slices.Repeat([]int{2000}, long-1), slices.Repeat([]int{fewArgs}, longCost+1)...), []int{long - 1 + longCost, 1}},
	} {
		var commands []redis.Cmder
		for _, args := range c.args {
			commands = append(commands, redis.NewCmd(t.Context(), make([]any, args)...))
		}
		var got []int
		for some := range pipelines(commands) {
			if &some[0] != &commands[0] {
				t.Fatal("commands are not in their order")
			}
			commands, got = commands[len(some):], append(got, len(some))
		}
		if !slices.Equal(got, c.want) || len(commands) > 0 {
			t.Errorf("pipelines of %v commands, want %v; %d were left out", got, c.want, len(commands))
		}
	}
}
