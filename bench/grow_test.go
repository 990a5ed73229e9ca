package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

var grownAt = flag.Float64("grown-at", 1000, "events a second while BenchmarkGrow adds shards and masters")

// probesPerSecond is the rate of new users about whose first payment a client asks until it is counted.
const probesPerSecond = 20

// BenchmarkGrow spreads the state of -events events from 4 shards over 64, and then from three masters of a cluster
// over six, while events flow and questions are asked. It reports the time from the broker's acknowledgement of a
// payment until an answer counts it. Run it once: -benchtime 1x.
func BenchmarkGrow(b *testing.B) {
	for b.Loop() {
		grow(b)
	}
}

func grow(b *testing.B) {
	broker := kafkatest.New(b, kafkatest.Options{Loaded: true})
	createTopics(b, broker.Client())
	feed := newFeed(b, broker.Addrs(), population(*events))
	feed.fill(b, *events, *span)
	cluster := redistest.NewCluster(b)
	binary, err := blackbox.Build(b.TempDir(), false)
	if err != nil {
		b.Fatal(err)
	}
	definitions, err := filepath.Abs("../config/features") // Weir runs in a folder of its own
	if err != nil {
		b.Fatal(err)
	}
	settings := []string{
		"--features", definitions, "--kafka.brokers", broker.Addr(), "--api.listen", "127.0.0.1:0",
		"--redis.mode", "cluster", "--redis.addresses", strings.Join(cluster.Addrs(), ","),
	}
	run := func(args ...string) {
		if out, err := exec.Command(binary, slices.Concat(args, settings)...).CombinedOutput(); err != nil {
			b.Fatalf("weir %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	weir := testkit.Start(b, binary, append([]string{"run"}, settings...)...)
	var url string
	testkit.Eventually(b, time.Minute, "an API", func() (ok bool, _ string) {
		url, ok = blackbox.Listening(weir.Log())
		return ok, weir.Log()
	})
	awaitApplied(b, binary, settings)

	live := &prober{b: b, feed: feed, url: url, done: make(chan struct{})}
	stopped := make(chan struct{})
	go func() { defer close(stopped); live.run() }()
	phase := func(name string, do func()) {
		from, began := live.count(), time.Now()
		do()
		live.report(name, time.Since(began), from)
	}
	steadily := func() { time.Sleep(*steady) }
	phase("warming up", steadily)
	phase("4 shards, 3 masters", steadily)
	phase("weir reshard --to 64", func() { run("reshard", "--to", "64", "--yes") })
	phase("64 shards, 3 masters", steadily)
	for range 3 {
		cluster.AddMaster(b)
	}
	phase("redis-cli --cluster rebalance", func() {
		out, err := exec.Command("redis-cli", "--cluster", "rebalance", cluster.Addrs()[0], "--cluster-use-empty-masters").CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out[max(0, len(out)-2000):])
		}
	})
	phase("64 shards, 6 masters", steadily)
	phase("weir reshard --delete-old", func() { run("reshard", "--delete-old") })
	close(live.done)
	<-stopped
	live.checkCounts()
}

// prober streams events, and among them the first payments of new users. It asks about each of these until it is
// counted.
type prober struct {
	b    *testing.B
	feed *feed
	url  string
	done chan struct{}

	mutex  sync.Mutex
	asking sync.WaitGroup
	ages   []time.Duration // by probe; 0 while it is not counted
}

func (p *prober) count() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.ages)
}

func (p *prober) run() {
	ordinary := time.NewTicker(time.Duration(float64(time.Second) / *grownAt * 10))
	defer ordinary.Stop()
	probe := time.NewTicker(time.Second / probesPerSecond)
	defer probe.Stop()
	for {
		select {
		case <-p.done:
			p.asking.Wait()
			return
		case now := <-ordinary.C:
			for range 10 {
				p.feed.client.Produce(p.b.Context(), p.feed.next(now), p.produced)
			}
		case now := <-probe.C:
			p.pay(now)
		}
	}
}

func (p *prober) produced(_ *kgo.Record, err error) {
	if err != nil {
		p.b.Errorf("an event is not in the log: %v", err)
	}
}

// pay makes the first payment of a new user.
func (p *prober) pay(now time.Time) {
	p.mutex.Lock()
	n := len(p.ages)
	p.ages = append(p.ages, 0)
	p.mutex.Unlock()
	p.asking.Add(1)
	key := []byte(probed(n))
	record := &kgo.Record{Topic: transactions, Key: key, Partition: p.feed.skew.partition(key), Timestamp: now, Value: fmt.Appendf(nil,
		`{"type":"transaction","event_id":"probe-%d","timestamp":%d,"user_id":"%s","device_id":"%[3]s","card_id":"%[3]s","merchant_id":"m","amount":1,"currency":"EUR","status":"approved"}`,
		n, now.UnixMilli(), probed(n))}
	p.feed.client.Produce(p.b.Context(), record, func(r *kgo.Record, err error) {
		p.produced(r, err)
		go p.await(n, time.Now())
	})
}

func probed(n int) string { return fmt.Sprintf("probe%d", n) }

// await asks about a probe until it is counted.
func (p *prober) await(n int, acknowledged time.Time) {
	defer p.asking.Done()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for time.Since(acknowledged) < time.Minute {
		if p.counted(n) == "1" {
			p.mutex.Lock()
			p.ages[n] = time.Since(acknowledged)
			p.mutex.Unlock()
			return
		}
		<-tick.C
	}
	p.b.Errorf("the payment of %s is not counted after a minute", probed(n))
}

// counted returns the number of payments of a probe's user, "" if there is no answer.
func (p *prober) counted(n int) string {
	found, err := blackbox.Ask(p.url, blackbox.Question{
		Features: []string{"user_tx_1h"}, At: time.Now().UnixMilli(), Entities: []json.RawMessage{fmt.Appendf(nil, `{"user_id":%q}`, probed(n))},
	})
	if err != nil {
		return ""
	}
	return string(found[0]["user_tx_1h"].Value)
}

// report waits for all probes from one on, and prints their ages.
func (p *prober) report(phase string, took time.Duration, from int) {
	until := p.count()
	var ages []time.Duration
	testkit.Eventually(p.b, 2*time.Minute, "all payments are counted", func() (bool, string) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		ages = slices.Clone(p.ages[from:until])
		return !slices.Contains(ages, 0), "some are not"
	})
	slices.Sort(ages)
	fmt.Printf("%-32s %4.0f s, %5d payments: p50 %6.1f ms, p99 %7.1f ms, most %7.1f ms\n",
		phase, took.Seconds(), len(ages), percentile(ages, 50), percentile(ages, 99), ages[len(ages)-1].Seconds()*1e3)
}

// checkCounts asks about each probe once more: nothing counts twice.
func (p *prober) checkCounts() {
	for n := range p.ages {
		if got := p.counted(n); got != "1" {
			p.b.Errorf("%s has %s payments, want 1", probed(n), got)
		}
	}
}
