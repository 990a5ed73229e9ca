package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// While one Redis master of three hangs, events of the others' entities are applied, in all
// partitions; then its own are, each once.
func TestOneMasterHangs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := redistest.NewCluster(t)
	b.onCluster(cluster)
	b.run()
	const rounds = 6
	b.write(payments(0, 210)...)
	b.eventually(b.counts(30, 30))

	cluster.Nodes[0].Pause()
	for n := 1; n < rounds; n++ {
		b.write(payments(n*210, (n+1)*210)...)
	}
	b.eventually(b.counts(30*rounds, 0))
	degraded := func() (bool, string) {
		err := b.processor.Ready(t.Context())
		part, ok := err.(interface{ Degraded() bool })
		return ok && part.Degraded() && strings.Contains(err.Error(), "state shards lag from offset"), fmt.Sprint(err)
	}
	testkit.Eventually(t, time.Minute, "the processor's readiness", degraded)

	cluster.Nodes[0].Resume()
	b.eventually(b.counts(30*rounds, 30*rounds))
	testkit.Eventually(t, time.Minute, "the processor ready", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
}

// If one of two masters that do not answer recovers, its shards do not wait for those of the other.
func TestMasterReturnsWhileAnotherHangs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := redistest.NewCluster(t)
	b.onCluster(cluster)
	b.run()
	b.write(payments(0, 210)...)
	b.eventually(b.counts(30, 30))

	cluster.Nodes[0].Pause()
	b.write(payments(210, 420)...)
	b.eventually(b.counts(60, 0))
	one, err := b.payments()
	if err != nil {
		t.Fatal(err)
	}
	// The node with the other users hangs for longer than the deadlines.
	if err := cluster.Nodes[2].Client(t).Do(t.Context(), "client", "pause", 5000, "all").Err(); err != nil {
		t.Fatal(err)
	}
	b.write(payments(420, 630)...)
	b.eventually(func() (bool, string) {
		got, err := b.payments()
		ok := err == nil
		for user, text := range got {
			want := "90"
			if one[user] == "" {
				want = ""
			}
			ok = ok && text == want
		}
		return ok, fmt.Sprintf("%q, %v", got, err)
	})
	cluster.Nodes[0].Resume()
	b.eventually(b.counts(90, 90))
}

// A processor that starts while a master hangs takes its partitions in the shards of the others; the rest follows when
// the master has recovered, each event once.
func TestPartitionsAreAssignedWhileAMasterHangs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := redistest.NewCluster(t)
	b.onCluster(cluster)
	b.run()
	b.write(payments(0, 210)...)
	b.eventually(b.counts(30, 30))
	first, stopFirst := b.processor, b.stop
	cluster.Nodes[0].Pause()
	b.run() // it joins the group and takes over some partitions
	testkit.Eventually(t, time.Minute, "both have partitions", func() (bool, string) {
		a, c := first.Stats().Assigned, b.processor.Stats().Assigned
		return a > 0 && c > 0 && a+c == partitions, fmt.Sprint(a, " and ", c)
	})
	b.write(payments(210, 420)...)
	b.eventually(b.counts(60, 0))
	if err := stopFirst(); err != nil {
		t.Fatal(err)
	}
	b.write(payments(420, 630)...)
	b.eventually(b.counts(90, 0))
	cluster.Nodes[0].Resume()
	b.eventually(b.counts(90, 90))
	testkit.Eventually(t, time.Minute, "the processor ready", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	b.write(payments(630, 840)...)
	b.eventually(b.counts(120, 120))
}

// onCluster makes the bench work on a cluster, with deadlines that a busy machine keeps and a test can wait for.
func (b *bench) onCluster(cluster *redistest.Cluster) {
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), ContextTimeoutEnabled: true, ReadTimeout: 4 * time.Second, DialTimeout: 4 * time.Second,
	})
	b.t.Cleanup(func() { _ = client.Close() })
	b.redis = client
	b.store = redisstore.New(client, "lagging", 24, redisstore.Deadlines(time.Second, 2*time.Second))
	b.config.Store = b.store
}

// payments reads the number of payments of each user; "" if it cannot be read.
func (b *bench) payments() (each []string, err error) {
	var reading query.Reading
	reading.Reset(at)
	for user := range 7 {
		f, _ := b.registry.Feature("payments")
		reading.Want(f, fmt.Sprint("u", user), at)
	}
	if err := reading.Read(context.Background(), b.store); err != nil {
		return nil, err
	}
	for range 7 {
		var a query.Answer
		reading.Next(&a)
		text := string(a.Value.AppendText(nil))
		if a.Status == query.Unavailable {
			text = ""
		}
		each = append(each, text)
	}
	return each, nil
}

// counts reports whether each user has the expected number of payments, or cannot be read if that number is 0, for a
// master that hangs.
func (b *bench) counts(near, far int) func() (bool, string) {
	return func() (bool, string) {
		got, err := b.payments()
		if err != nil {
			return false, err.Error()
		}
		ok, away := true, 0
		for _, text := range got {
			if text == "" {
				away++
			}
			ok = ok && (text == fmt.Sprint(near) || text == "" && far == 0)
		}
		return ok && (far == 0) == (away > 0) && away < 7, fmt.Sprintf("%q", got)
	}
}

func (b *bench) eventually(check func() (bool, string)) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, "the number of payments", check)
}
