package bench

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// askers is the number of concurrent clients; manyAskers keeps some client waiting at any time.
	askers, manyAskers = 16, 64
	// The ways of asking alternate in rounds of roundFor at each load, because the speed of a
	// shared machine varies.
	roundFor = time.Second
	pace     = 1000 // questions a second, for the paced load of each way
)

var rounds = flag.Int("rounds", 5, "how many seconds each way to ask is measured at each load")

// way is one way of asking: ask sends a question about the entities of a number.
type way struct {
	name  string
	ask   func(n uint64) error
	redis *redis.Client // of the server that holds the answers
	// cpu returns the CPU time, in seconds, that the answering process has used.
	cpu func(b *testing.B) float64
	// profile writes a CPU profile of that process over a time; nil if it has none.
	profile func(b *testing.B, file string, over time.Duration)
}

// asked is the result of one way of asking.
type asked struct {
	way
	one, some, many answers // with one client, askers and manyAskers
	paced           answers // with askers clients at a rate; none if the way is slower

	cpu, redisCPU float64 // µs a question with askers clients, of the answering process and of Redis
}

// answers are the latencies of the questions asked during a time.
type answers struct {
	took   []time.Duration
	during time.Duration
}

func (a *answers) rate() float64 { return float64(len(a.took)) / a.during.Seconds() }

// over returns the ratio of these answers' rate to the rate of others.
func (a *answers) over(others *answers) float64 { return a.rate() / others.rate() }

// ask measures several ways in turn.
func ask(b *testing.B, ways []way) []asked {
	list := make([]asked, len(ways))
	for i, w := range ways {
		list[i].way = w
	}
	inTurn := func(turn func(round int, a *asked)) {
		for round := range *rounds {
			for i := range list {
				turn(round, &list[i])
			}
		}
	}
	inTurn(func(_ int, a *asked) { a.one.load(b, a.way, 0, 1) })
	inTurn(func(round int, a *asked) { a.measure(b, round) })
	inTurn(func(_ int, a *asked) { a.many.load(b, a.way, 0, manyAskers) })
	inTurn(func(_ int, a *asked) {
		if a.some.rate() >= pace { // a slower way would fall behind further and further
			a.paced.load(b, a.way, pace, askers)
		}
	})
	for i := range list {
		n := float64(len(list[i].some.took)) / 1e6
		list[i].cpu, list[i].redisCPU = list[i].cpu/n, list[i].redisCPU/n
	}
	return list
}

// measure asks for a round with askers clients, and adds the CPU time used, in seconds.
func (a *asked) measure(b *testing.B, round int) {
	var profiling sync.WaitGroup
	defer profiling.Wait()
	if *profiles != "" && a.profile != nil {
		profiling.Go(func() { a.profile(b, fmt.Sprintf("%s/%s %d.prof", *profiles, a.name, round), roundFor) })
	}
	server := side{redis: a.way.redis}
	redisCPU := func() float64 { return server.info(b, "cpu", "used_cpu_user", "used_cpu_sys") }
	cpu, ofRedis := a.way.cpu(b), redisCPU()
	a.some.load(b, a.way, 0, askers)
	a.cpu, a.redisCPU = a.cpu+a.way.cpu(b)-cpu, a.redisCPU+redisCPU()-ofRedis
}

// load asks with a number of clients for a round, at a rate or, if it is 0, as fast as they can,
// and adds the latency of each question. At a rate, latency counts from when the question is due.
func (a *answers) load(b *testing.B, w way, rate, askers int) {
	var mu sync.Mutex
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range askers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(rand.Uint64(), 1))
			var took []time.Duration
			for {
				due := time.Now()
				if rate > 0 {
					due = began.Add(time.Duration(next.Add(1)) * time.Second / time.Duration(rate))
					time.Sleep(time.Until(due))
				}
				if due.Sub(began) > roundFor {
					break
				}
				if err := w.ask(random.Uint64()); err != nil {
					b.Error(err)
					break
				}
				took = append(took, time.Since(due))
			}
			mu.Lock()
			defer mu.Unlock()
			a.took = append(a.took, took...)
		})
	}
	wg.Wait()
	a.during += roundFor
}

// printAsked prints a table of the ways.
func printAsked(b *testing.B, list []asked) {
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n20 features, 3 entities\tone asks: a second\t%d ask\tCPU µs a question\tof Redis\tp50\tp99\tp99.9\t%d ask: a second\tat 1,000 a second: p50\tp99\tp99.9\t\n",
		askers, manyAskers)
	for _, a := range list {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t%.0f\t%s\t\n", a.name, a.one.rate(), a.some.rate(), a.cpu, a.redisCPU,
			a.some.quantiles(), a.many.rate(), a.paced.quantiles())
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
}

// quantiles returns the table cells for p50, p99 and p99.9, with dashes if nothing was asked.
func (a *answers) quantiles() string {
	if len(a.took) == 0 {
		return "-\t-\t-"
	}
	slices.Sort(a.took)
	at := func(q float64) time.Duration {
		return a.took[int(q*float64(len(a.took)-1))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("%v\t%v\t%v", at(0.5), at(0.99), at(0.999))
}
