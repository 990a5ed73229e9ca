package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// BenchmarkCluster applies the same events with two and with four processors to a Redis Cluster of three and of six
// masters, with 64 shards. It reports what an event costs the processors and the masters, and how evenly the masters
// share calls, keys, bytes and CPU: the greatest share relative to the mean. Run it once: -benchtime 1x.
func BenchmarkCluster(b *testing.B) {
	for b.Loop() {
		clusters(b)
	}
}

func clusters(b *testing.B) {
	broker, feed := loadedBroker(b, skew{})
	binary, err := blackbox.Build(b.TempDir(), false)
	if err != nil {
		b.Fatal(err)
	}
	definitions, err := filepath.Abs("../config/features")
	if err != nil {
		b.Fatal(err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\nmasters\tprocessors\tµs an event: processors\tmasters\tgreatest/mean: calls\tkeys\tbytes\tCPU\t\n")
	for _, masters := range []int{3, 6} {
		for _, processors := range []int{2, 4} {
			cluster := redistest.NewClusterOf(b, masters)
			settings := []string{
				"--features", definitions, "--kafka.brokers", broker.Addr(), "--api.listen", "127.0.0.1:0", "--shards", "64",
				"--kafka.group", fmt.Sprintf("%d-masters-%d-processors", masters, processors),
				"--redis.mode", "cluster", "--redis.addresses", strings.Join(cluster.Addrs(), ","),
			}
			var nodes []*redis.Client
			for _, node := range cluster.Nodes {
				nodes = append(nodes, node.Client(b))
			}
			figures := func() [][]float64 {
				return [][]float64{
					infoOf(b, nodes, "stats", "total_commands_processed"), keysOf(b, nodes),
					infoOf(b, nodes, "memory", "used_memory"), infoOf(b, nodes, "cpu", "used_cpu_user", "used_cpu_sys"),
				}
			}
			before := figures()
			own := applyAll(b, binary, settings, processors)
			after := figures()
			var shares []string
			for i := range after {
				after[i] = subtract(after[i], before[i])
				shares = append(shares, fmt.Sprintf("%.3f", spread(after[i])))
			}
			million := float64(feed.produced) / 1e6
			fmt.Fprintf(table, "%d\t%d\t%.1f\t%.1f\t%s\t\n", masters, processors, own/million, sum(after[3])/million, strings.Join(shares, "\t"))
			for _, node := range cluster.Nodes {
				node.Kill()
			}
		}
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
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
