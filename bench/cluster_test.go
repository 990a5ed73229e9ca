package bench

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// clusterTurns is how often each cluster is measured, in turn, since the speed of a machine varies.
const clusterTurns = 3

// BenchmarkCluster applies the same events with two and with four processors to a Redis Cluster of three and of six
// masters, with 64 shards. It reports the median of what an event costs the processors and the masters, and how evenly the
// masters share calls, keys, bytes and CPU: the greatest share relative to the mean, the greatest of all turns. Run it once:
// -benchtime 1x.
func BenchmarkCluster(b *testing.B) {
	for b.Loop() {
		clusters(b)
	}
}

func clusters(b *testing.B) {
	broker, feed := loadedBroker(b, skew{})
	c := clusterLoad{broker: broker, millions: float64(feed.produced) / 1e6}
	var err error
	if c.binary, err = blackbox.Build(b.TempDir(), false); err != nil {
		b.Fatal(err)
	}
	if c.definitions, err = filepath.Abs("../config/features"); err != nil {
		b.Fatal(err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\nprocessors\tmasters\tµs an event: processors\tmasters\tgreatest/mean: calls\tkeys\tbytes\tCPU\t\n")
	for _, processors := range []int{2, 4} {
		few, many := make([]clusterCost, clusterTurns), make([]clusterCost, clusterTurns)
		for turn := range clusterTurns {
			few[turn], many[turn] = c.apply(b, 3, processors), c.apply(b, 6, processors)
		}
		fmt.Fprintf(table, "%d\t3\t%s\n%d\t6\t%s\n", processors, rowOf(few), processors, rowOf(many))
		all := func(c clusterCost) float64 { return c.processors + c.masters }
		b.ReportMetric(median(many, all)/median(few, all), fmt.Sprintf("%d-processors-6/3-masters", processors))
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
}

// clusterLoad is what processors apply.
type clusterLoad struct {
	broker              *kafkatest.Broker
	binary, definitions string
	millions            float64 // events
}

// clusterCost is what an event costs processors and masters, in µs of CPU, and the greatest share of a master in calls, keys,
// bytes and CPU, relative to the mean.
type clusterCost struct {
	processors, masters float64
	greatest            [4]float64
}

// apply applies the events to a cluster of its own.
func (c *clusterLoad) apply(b *testing.B, masters, processors int) (cost clusterCost) {
	cluster := redistest.NewClusterOf(b, masters)
	settings := []string{
		"--features", c.definitions, "--kafka.brokers", c.broker.Addr(), "--api.listen", "127.0.0.1:0", "--shards", "64",
		"--kafka.group", rand.Text(), "--redis.mode", "cluster", "--redis.addresses", strings.Join(cluster.Addrs(), ","),
	}
	var nodes []*redis.Client
	for _, node := range cluster.Nodes {
		nodes = append(nodes, node.Client(b))
	}
	figures := func() [4][]float64 {
		return [4][]float64{
			infoOf(b, nodes, "stats", "total_commands_processed"), keysOf(b, nodes),
			infoOf(b, nodes, "memory", "used_memory"), infoOf(b, nodes, "cpu", "used_cpu_user", "used_cpu_sys"),
		}
	}
	// Processors of a new namespace search one master for shards of an older one.
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer client.Close()
	if err := redisstore.New(client, namespace, 64).Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	before := figures()
	cost.processors = applyAll(b, c.binary, settings, processors) / c.millions
	after := figures()
	for i := range after {
		after[i] = subtract(after[i], before[i])
		cost.greatest[i] = spread(after[i])
	}
	cost.masters = sum(after[3]) / c.millions
	for _, node := range cluster.Nodes {
		node.Kill()
	}
	return cost
}

// rowOf returns the figures of the table for several turns.
func rowOf(turns []clusterCost) string {
	row := fmt.Sprintf("%.1f\t%.1f\t", median(turns, func(c clusterCost) float64 { return c.processors }),
		median(turns, func(c clusterCost) float64 { return c.masters }))
	for i := range turns[0].greatest {
		greatest := 0.0
		for _, c := range turns {
			greatest = max(greatest, c.greatest[i])
		}
		row += fmt.Sprintf("%.3f\t", greatest)
	}
	return row
}

// median returns the median of a figure of an odd number of turns.
func median(turns []clusterCost, figure func(clusterCost) float64) float64 {
	var list []float64
	for _, c := range turns {
		list = append(list, figure(c))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// applyAll applies everything in the topics with a number of processors, and returns the CPU time that they took in
// seconds, their start included.
func applyAll(b *testing.B, binary string, settings []string, processors int) (cpu float64) {
	var all []*exec.Cmd
	for range processors {
		p := exec.Command(binary, append([]string{"run"}, settings...)...)
		if err := p.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = p.Process.Kill() })
		all = append(all, p)
	}
	awaitApplied(b, binary, settings)
	for _, p := range all {
		if err := p.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			b.Fatalf("a processor: %v", err)
		}
		cpu += (p.ProcessState.UserTime() + p.ProcessState.SystemTime()).Seconds()
	}
	return cpu
}

// keysOf returns the number of keys of each master.
func keysOf(b *testing.B, masters []*redis.Client) (list []float64) {
	for _, m := range masters {
		n, err := m.DBSize(b.Context()).Result()
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, float64(n))
	}
	return list
}
