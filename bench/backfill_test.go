package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

var liveRate = flag.Float64("live", 0, "events a second while features are filled; 0 is half of what a processor keeps up with")

// before holds the definitions under which the events are first applied.
const before = `
streams:
  transaction:
    topic: transactions
    match: type == "transaction"
    timestamp: timestamp
    id: event_id
    fields:
      user_id: string
      device_id: string
      card_id: string
      merchant_id: string
      amount: {type: decimal, scale: 2}
      status: string
features:
  device_tx_7d: COUNT(7d, transaction, device_id)
`

// added holds the features to fill: one, or as many as the Fraud Detection Handbook has.
var added = []struct{ name, features string }{
	{"one feature", "  card_tx_30d: COUNT(30d, transaction, card_id)\n"},
	{"twelve features", twelve()},
}

func twelve() string {
	var b strings.Builder
	for _, by := range []string{"user_id", "card_id"} {
		for _, days := range []int{1, 7, 30} {
			fmt.Fprintf(&b, "  %s_count_%dd: COUNT(%dd, transaction, %s)\n", by, days, days, by)
			fmt.Fprintf(&b, "  %s_avg_%dd: AVG(%dd, transaction, amount, %s)\n", by, days, days, by)
		}
	}
	return b.String()
}

// filled matches the last line of the command.
var filled = regexp.MustCompile(`done, (\d+) records`)

// BenchmarkBackfill fills new features from the log with one process at full rate, while a processor
// waits for events. Run it once: -benchtime 1x.
func BenchmarkBackfill(b *testing.B) {
	for b.Loop() {
		fillAtFullRate(b)
	}
}

// BenchmarkBackfillFreshness streams events at half load, or at the rate of -live, to a processor, with twelve new features
// that it fills meanwhile at the default rate, and before and after that with the same features and no backfill. It
// reports how much older events are when they are applied. Run it once: -benchtime 1x.
func BenchmarkBackfillFreshness(b *testing.B) {
	for b.Loop() {
		freshnessWhileFilling(b)
	}
}

func freshnessWhileFilling(b *testing.B) {
	broker, feed := loadedBroker(b, skew{})
	server := redistest.New(b, redistest.Options{})
	s := side{name: "weir", server: server, redis: server.Client(b), addr: server.Addr()}
	s.load(b, broker.Addrs(), feed)
	more := filepath.Join(b.TempDir(), "more.yaml")
	if err := os.WriteFile(more, []byte("features:\n"+twelve()), 0o600); err != nil {
		b.Fatal(err)
	}
	perSecond := *liveRate
	if perSecond == 0 {
		perSecond = s.sustained(b, broker.Addrs(), feed) / 2
	}
	fmt.Printf("ms from an event until it is applied, at %.0f events a second\n", perSecond)
	var p99 [3]float64
	for i, rate := range []float64{0, config.Default().Backfill.Rate, 0} {
		o := order{Consumer: s.name, Brokers: broker.Addrs(), Redis: s.addr, More: more, Rate: rate}
		made, acknowledged, found := s.ages(b, feed, o, perSecond, *steady)
		if rate > 0 && len(found.Filling) == 0 {
			b.Errorf("the backfill was over before the last event: more -events, or less -steady")
		}
		p99[i] = percentile(made, 99)
		for _, f := range found.Filling {
			fmt.Printf("  %.0f records of %s filled a second\n", f.Rate, f.Topic)
		}
		fmt.Printf("  backfill at %v of a core: since it was made p50 %.1f, p99 %.1f; since it was acknowledged p50 %.1f, p99 %.1f\n",
			rate, percentile(made, 50), p99[i], percentile(acknowledged, 50), percentile(acknowledged, 99))
	}
	b.ReportMetric(p99[1]-(p99[0]+p99[2])/2, "p99-ms-more")
}

func fillAtFullRate(b *testing.B) {
	broker, _ := loadedBroker(b, skew{})
	binary, err := blackbox.Build(b.TempDir(), false)
	if err != nil {
		b.Fatal(err)
	}
	for _, add := range added {
		server := redistest.New(b, redistest.Options{})
		definitions := filepath.Join(b.TempDir(), "features.yaml")
		write := func(text string) {
			if err := os.WriteFile(definitions, []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		write(before)
		settings := []string{"--features", definitions, "--kafka.brokers", broker.Addr(), "--redis.addresses", server.Addr()}
		weir := func(args ...string) *exec.Cmd { return exec.Command(binary, append(args, settings...)...) }
		processor := testkit.Start(b, binary, append([]string{"run", "--roles", "processor", "--api.listen", "127.0.0.1:0", "--backfill.mode", "off"}, settings...)...)
		awaitApplied(b, binary, settings)
		write(before + add.features)
		side := side{redis: server.Client(b)}
		// The command fails at once until the processor has taken the definitions.
		testkit.Eventually(b, time.Minute, "the backfill is done", func() (bool, string) {
			redis, began := side.info(b, "cpu", "used_cpu_user", "used_cpu_sys"), time.Now()
			command := weir("backfill", "--rate", "1")
			out, err := command.CombinedOutput()
			if err != nil {
				return false, string(out)
			}
			took := time.Since(began).Seconds()
			found := filled.FindSubmatch(out)
			if found == nil {
				b.Fatalf("weir backfill does not report its rate:\n%s", out)
			}
			n, _ := strconv.ParseFloat(string(found[1]), 64)
			redis = side.info(b, "cpu", "used_cpu_user", "used_cpu_sys") - redis
			cpu := (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
			fmt.Printf("%s: %.0f records in %.1f s, %.0f a second; of one core: %.0f of the process' CPU, %.0f with that of Redis; CPU s per million: process %.2f, Redis %.2f\n",
				add.name, n, took, n/took, n/cpu, n/(cpu+redis), cpu/n*1e6, redis/n*1e6)
			name := strings.ReplaceAll(add.name, " ", "-")
			b.ReportMetric(n/took, name+"/s")
			b.ReportMetric(n/cpu, name+"/core-s")
			return true, ""
		})
		processor.Stop()
		server.Kill()
	}
}

// awaitApplied waits until a binary of Weir reports that everything is applied.
func awaitApplied(b *testing.B, binary string, settings []string) {
	testkit.Eventually(b, 5*time.Minute, "all events are applied", func() (bool, string) {
		out, err := exec.Command(binary, append([]string{"progress", "--max-lag", "0"}, settings...)...).CombinedOutput()
		return err == nil, string(out)
	})
}
