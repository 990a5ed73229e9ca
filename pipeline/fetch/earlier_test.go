package fetch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/state"
)

// However records are dated, all that is needed is read, and little more unless records of an offset are far older than
// others before it.
func TestWhereToReadFrom(t *testing.T) {
	now, random := time.Now().UnixMilli(), rand.New(rand.NewPCG(1, 2))
	stamps := [][]int64{{}, {now}, {0, 0, 0}, {-1, -1, -1}} // by partition
	for range 8 {
		var list []int64
		at := now - random.Int64N(int64(math.Pow(10, float64(1+random.IntN(12)))))
		for range 150 {
			at += random.Int64N(int64(math.Pow(10, float64(random.IntN(5)))))
			list = append(list, at)
			if random.IntN(30) == 0 {
				list = append(list, at-random.Int64N(1_000_000), at+random.Int64N(10_000))
			}
		}
		if random.IntN(4) == 0 {
			list = slices.Insert(list, random.IntN(len(list)), 9_000_000_000_000)
		}
		stamps = append(stamps, list)
	}
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(int32(len(stamps)), "t"))
	client := newClient(t, c, kgo.DisableIdempotentWrite(), kgo.ProducerLinger(0))
	for partition, list := range stamps {
		for _, at := range list { // the client dates a batch by its last record, which brokers mend
			produce(t, client, &kgo.Record{Topic: "t", Partition: int32(partition), Timestamp: time.UnixMilli(at), Value: []byte("v")})
		}
	}
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := NewPoller(PollerConfig{Transport: transport, Bootstrap: kafka.TCP(c.ListenAddrs()...)})
	t.Cleanup(p.Close)
	var partitions []state.Partition
	for i := range stamps {
		partitions = append(partitions, state.Partition{Topic: "t", ID: int32(i)})
	}
	for range 20 {
		logs, err := p.Logs(testContext(t), partitions)
		if err != nil {
			t.Fatal(err)
		}
		asked := make([]Before, len(stamps))
		for i, list := range stamps {
			asked[i] = Before{Offset: random.Int64N(int64(len(list)) + 1), Reach: []int64{0, 1, 50, 5000, 600_000, 600_000_000}[random.IntN(6)], Most: []int64{3, 100, 1 << 20}[random.IntN(3)]}
		}
		for i, from := range p.Earlier(testContext(t), partitions, logs, asked) {
			b, list := asked[i], stamps[i]
			first := func(reach int64) int64 { // the first record that is not older than reach before the newest one
				before := list[:b.Offset]
				if len(before) == 0 || b.Reach == 0 {
					return b.Offset
				}
				newest := slices.Max(before)
				return max(b.Offset-b.Most, int64(slices.IndexFunc(before, func(at int64) bool { return at >= newest-reach })))
			}
			most := first(b.Reach)
			least := first(b.Reach + b.Reach/2)
			if b.Offset > 0 && slices.Max(list[:b.Offset]) > now {
				least = 0 // no record is searched for beyond the clock
			}
			if logs[i].Err != nil || from > most || from < least && slices.Max(list[:max(1, b.Offset)]) > 0 {
				t.Errorf("partition %d, %+v: read from %d, error %v; want from %d to %d", i, b, from, logs[i].Err, least, most)
			}
		}
	}
}

// What nobody gets does not say how far back to read, however it is dated: records of transactions that were rolled back, and the
// marks at the end of each, which have the time at which they were written.
func TestWhereToReadFromBesideTransactions(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	client := newClient(t, c, kgo.TransactionalID("first"))
	old := time.Now().Add(-30 * 24 * time.Hour)
	write := func(end kgo.TransactionEndTry, times ...time.Time) {
		t.Helper()
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, at := range times {
			produce(t, client, &kgo.Record{Topic: "t", Timestamp: at, Value: []byte("v")})
		}
		if err := client.EndTransaction(testContext(t), end); err != nil {
			t.Fatal(err)
		}
	}
	write(kgo.TryCommit, old, old.Add(time.Hour), old.Add(2*time.Hour)) // 0, 1, 2; the mark is 3
	write(kgo.TryCommit, old.Add(3*time.Hour))                          // 4
	for range 300 {                                                     // 6 to 605
		write(kgo.TryAbort, time.Now())
	}
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := NewPoller(PollerConfig{Transport: transport, Bootstrap: kafka.TCP(c.ListenAddrs()...)})
	t.Cleanup(p.Close)
	partition := []state.Partition{{Topic: "t"}}
	for reach, want := range map[time.Duration]int64{30 * time.Minute: 4, 90 * time.Minute: 2, 150 * time.Minute: 1, 24 * time.Hour: 0} {
		for _, offset := range []int64{5, 6, 606} {
			logs, err := p.Logs(testContext(t), partition)
			if err != nil {
				t.Fatal(err)
			}
			got := p.Earlier(testContext(t), partition, logs, []Before{{Offset: offset, Reach: reach.Milliseconds(), Most: 1 << 20}})[0]
			if want := min(want, 3); logs[0].Err != nil || got > want || want < 3 && got != want { // the mark at 3 is of today
				t.Errorf("%v before offset %d: read from %d, error %v; want %d", reach, offset, got, logs[0].Err, want)
			}
		}
	}
}
