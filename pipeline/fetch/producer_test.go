package fetch

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The records of a real producer are read, in every codec, with committed and aborted transactions.
func TestReadRecordsOfAProducer(t *testing.T) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
			compressed := kgo.ProducerBatchCompression(codec)
			plain := newClient(t, c, compressed)
			first := newClient(t, c, compressed, kgo.TransactionalID("first"))
			second := newClient(t, c, compressed, kgo.TransactionalID("second"))
			begin := func(cl *kgo.Client) {
				if err := cl.BeginTransaction(); err != nil {
					t.Fatal(err)
				}
			}
			end := func(cl *kgo.Client, commit kgo.TransactionEndTry) {
				if err := cl.EndTransaction(testContext(t), commit); err != nil {
					t.Fatal(err)
				}
			}
			begin(first)
			begin(second)
			produce(t, first, numbered("t", 0, 0, 3)...)  // 0, 1, 2
			produce(t, second, numbered("t", 0, 3, 5)...) // 3, 4
			produce(t, plain, numbered("t", 0, 5, 6)...)
			produce(t, first, numbered("t", 0, 6, 7)...)
			end(first, kgo.TryAbort) // 7
			begin(first)
			produce(t, first, numbered("t", 0, 8, 9)...)
			end(second, kgo.TryCommit) // 9
			end(first, kgo.TryCommit)  // 10
			begin(second)
			produce(t, second, numbered("t", 0, 11, 20)...)
			end(second, kgo.TryAbort) // 20

			committed := newPoller(t, c)
			committed.Add("t", 0, 0)
			if diff := cmp.Diff([]string{"3:3", "4:4", "5:5", "8:8"}, pollUntil(t, committed, 21)); diff != "" {
				t.Errorf("read committed (-want +got):\n%s", diff)
			}
			uncommitted := newPoller(t, c, func(cfg *PollerConfig) { cfg.Isolation = ReadUncommitted })
			uncommitted.Add("t", 0, 1)
			var want []string
			for i := 1; i < 20; i++ {
				if i != 7 && i != 9 && i != 10 {
					want = append(want, fmt.Sprintf("%d:%d", i, i))
				}
			}
			if diff := cmp.Diff(want, pollUntil(t, uncommitted, 21)); diff != "" {
				t.Errorf("read uncommitted (-want +got):\n%s", diff)
			}

			// An open transaction holds the committed end back.
			begin(first)
			produce(t, first, numbered("t", 0, 21, 22)...)
			for p, want := range map[*Poller]span{committed: {0, 21}, uncommitted: {0, 22}} {
				got, err := p.offsets(testContext(t), "t", 0)
				if err != nil || got[0] != want {
					t.Errorf("offsets %v, error %v; want %v", got, err, want)
				}
			}
			eventually(t, "the lag behind an open transaction", func() bool {
				lag, _ := committed.Lag("t", 0, 21)
				return lag.Records == 1 && lag.Open == 1 && lag.OpenFor > 0
			})
			uncommitted.Seek("t", 0, 21)
			part, err := uncommitted.Poll(testContext(t))
			if err != nil || part.lastStableOffset != 21 || part.highWatermark != 22 ||
				endOffset(part.Isolation, part.highWatermark, part.lastStableOffset) != 22 {
				t.Errorf("unexpected partition %+v, error %v", part, err)
			}
			if lag, _ := uncommitted.Lag("t", 0, 21); lag != (Lag{Records: 1}) {
				t.Errorf("the lag is %+v with read_uncommitted, want 1 record", lag)
			}
			if got := endOffset(ReadCommitted, part.highWatermark, part.lastStableOffset); got != 21 {
				t.Errorf("the end offset is %d with read_committed, want 21", got)
			}
			end(first, kgo.TryCommit)
			eventually(t, "no lag once it is committed", func() bool {
				lag, _ := committed.Lag("t", 0, 23)
				return lag == Lag{}
			})
		})
	}
}
