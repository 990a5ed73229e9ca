package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// BenchmarkEngines applies the same events with Redis and with one node of Ignite, one after the other; then it measures the
// freshness at a rate that both keep up with, and questions about all features of a user. Run it once: -benchtime 1x.
func BenchmarkEngines(b *testing.B) {
	for b.Loop() {
		compareEngines(b)
	}
}

// engineRate is how many events a second are made while the freshness is measured, and questionRate how many questions.
const (
	engineRate   = 3000
	questionRate = 500
)

func compareEngines(b *testing.B) {
	broker, feed := loadedBroker(b, skew{})
	server, node := redistest.New(b, redistest.Options{}), ignitetest.NewLoaded(b, 1).Nodes[0]
	client := server.Client(b)
	redisCPU := func() float64 {
		s := &side{redis: client}
		return s.info(b, "cpu", "used_cpu_user", "used_cpu_sys")
	}
	loaded := int64(feed.produced)
	var columns [][]figure
	for _, engine := range []struct {
		order
		cpu func() float64
	}{
		{order{Redis: server.Addr()}, redisCPU},
		{order{Ignite: node.Address}, func() float64 { return processCPU(b, node.PID()) }},
	} {
		o := engine.order
		o.Consumer, o.Brokers, o.Until = "weir", broker.Addrs(), loaded
		before := engine.cpu()
		found := o.start(b).wait(b)
		n := float64(loaded)
		figures := []figure{
			{"events a second", rate(found.Steps)},
			{"CPU s per million events: processor", found.CPU / n * 1e6},
			{"CPU s per million events: store", (engine.cpu() - before) / n * 1e6},
		}
		s := &side{name: "weir", addr: server.Addr(), redis: client}
		made, acknowledged, _ := s.ages(b, feed, o, engineRate, *steady)
		figures = append(figures,
			figure{"ms until an event is applied: p50", percentile(made, 50)}, figure{"p99", percentile(made, 99)},
			figure{"ms since acknowledged: p99", percentile(acknowledged, 99)})
		loaded = int64(feed.produced)
		asked := askRegularly(b, &o, feed.users)
		columns = append(columns, append(figures, figure{"ms a question takes: p50", percentile(asked, 50)}, figure{"p99", percentile(asked, 99)}))
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n\tRedis\tIgnite\tratio\t\n")
	for i, f := range columns[0] {
		of := columns[1][i]
		fmt.Fprintf(table, "%s\t%.5g\t%.5g\t%.3f\t\n", f.name, f.value, of.value, of.value/f.value)
		b.ReportMetric(of.value/f.value, strings.NewReplacer(" ", "-", ":", "").Replace(f.name)+"-ratio")
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
}

// askRegularly asks about all features of random users, at questionRate, and returns how long that took, sorted.
func askRegularly(b *testing.B, o *order, users int) (took []time.Duration) {
	registry, err := definition.Load("../config/features")
	if err != nil {
		b.Fatal(err)
	}
	cfg := config.Default()
	state, end := o.store(cfg)
	defer end()
	const questions = 5000
	due := time.Now()
	var reading query.Reading
	for range questions {
		due = due.Add(time.Second / questionRate)
		time.Sleep(time.Until(due))
		user := fmt.Sprintf("u%06d", rand.IntN(users))
		start := time.Now()
		now := start.UnixMilli()
		reading.Reset(now)
		for _, f := range registry.Features {
			if slices.Equal(f.By, []string{"user_id"}) {
				reading.Want(f, user, now)
			}
		}
		if err := reading.Read(b.Context(), state); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took
}
