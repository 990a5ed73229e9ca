package bench

import (
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
)

const (
	transactions = "transactions"
	logins       = "logins"
	deadLetters  = "weir.dead-letters"
	partitions   = 4 // of each topic
)

// population returns the number of users for a month of fraud work: some thirty events each.
func population(events int) int { return max(100, events/30) }

// event is a transaction (three of five) or a login (two of five). Few users are busy: a hundredth
// of the users have a tenth of all events. Each user has up to three devices, two cards and a
// network; one event in fifty is on a device that many share.
type event struct {
	login                                    bool
	user, device, card, merchant, segment, n int
	cents                                    int
	good                                     bool // approved, or a login that succeeded
}

func newEvent(r *rand.Rand, n, users int) event {
	u := r.Float64()
	user := int(u * u * float64(users))
	device := 3*user + min(r.IntN(6), 2)
	if r.IntN(50) == 0 {
		device = 3 * r.IntN(users/50)
	}
	m := r.Float64()
	return event{
		login: r.IntN(5) < 2, user: user, device: device, card: 2*user + r.IntN(5)/4,
		merchant: int(m * m * 3000), segment: user % (users / 3), n: n,
		cents: 100 + int(r.ExpFloat64()*5000), good: r.IntN(10) > 0,
	}
}

func (e *event) topic() string {
	if e.login {
		return logins
	}
	return transactions
}

func (e *event) appendJSON(dst []byte, at int64) []byte {
	ip := fmt.Sprintf("10.%d.%d.%d", e.segment>>8, e.segment&255, e.device%250+1)
	if e.login {
		return fmt.Appendf(dst, `{"type":"login","event_id":"l-%d","timestamp":%d,"user_id":"u%06d","device_id":"d%08x","ip":"%s","success":%t}`,
			e.n, at, e.user, e.device, ip, e.good)
	}
	status := "approved"
	if !e.good {
		status = "declined"
	}
	return fmt.Appendf(dst, `{"type":"transaction","event_id":"t-%d","timestamp":%d,"user_id":"u%06d","device_id":"d%08x","card_id":"c%07d","merchant_id":"m%04d","ip":"%s","amount":%d.%02d,"currency":"EUR","status":"%s"}`,
		e.n, at, e.user, e.device, e.card, e.merchant, ip, e.cents/100, e.cents%100, status)
}

// entities holds the time of the last event of each entity that the shipped features keep state of,
// by the text that ends its keys.
type entities map[string]time.Time

func (s entities) add(e *event, at time.Time) {
	user, device := fmt.Sprintf("u%06d", e.user), fmt.Sprintf("d%08x", e.device)
	s[user], s[device] = at, at
	if e.login {
		s[fmt.Sprintf("10.%d.%d.0/24", e.segment>>8, e.segment&255)] = at
	} else {
		s[fmt.Sprintf("c%07d", e.card)], s[device+"|"+user] = at, at
	}
}

// loadedBroker returns a broker that holds -events events of the time -span, and has compiled its hot code: while Java
// compiles, everything on the machine is slower.
func loadedBroker(b *testing.B, s skew) (*kafkatest.Broker, *feed) {
	broker := kafkatest.New(b, kafkatest.Options{Loaded: true})
	createTopics(b, broker.Client())
	feed := newFeed(b, broker.Addrs(), population(*events))
	feed.skew = s
	feed.fill(b, *events, *span)
	for range 5 {
		feed.readAll(b, broker.Addrs())
	}
	return broker, feed
}

// feed produces events.
type feed struct {
	client   *kgo.Client
	random   *rand.Rand
	users    int
	produced int
	entities entities
	until    time.Time // of the last event
	skew     skew
}

// skew is the share of events that are not spread evenly.
type skew struct {
	oneEntity    float64 // of one user on one device
	onePartition float64 // of users whose records are in one partition of each topic; the others share the rest
	oneKey       float64 // whose key is the same, so that those of a user are in two partitions
}

// partition returns the partition of a key by its hash.
func (s skew) partition(key []byte) int32 {
	hash := crc32.ChecksumIEEE(key)
	switch {
	case s.onePartition == 0:
		return int32(hash % partitions)
	case float64(hash) < s.onePartition*math.MaxUint32:
		return 0
	}
	return 1 + int32(hash%(partitions-1))
}

func newFeed(b *testing.B, brokers []string, users int) *feed {
	// The linger is the default of Kafka's own producer since 4.0.
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return &feed{users: users, client: client, random: rand.New(rand.NewPCG(1, 2)), entities: entities{}}
}

// next makes the next event, which happens at the given time.
func (f *feed) next(at time.Time) *kgo.Record {
	e := newEvent(f.random, f.produced, f.users)
	if f.skew.oneEntity > 0 && f.random.Float64() < f.skew.oneEntity {
		e.user, e.device, e.card = 0, 0, 0
	}
	key := fmt.Appendf(nil, "u%06d", e.user)
	if f.skew.oneKey > 0 && f.random.Float64() < f.skew.oneKey {
		key = []byte("all")
	}
	f.produced++
	f.entities.add(&e, at)
	f.until = at
	return &kgo.Record{Topic: e.topic(), Key: key, Partition: f.skew.partition(key), Timestamp: at, Value: e.appendJSON(nil, at.UnixMilli())}
}

// fill produces n events, evenly over a time until now.
func (f *feed) fill(b *testing.B, n int, over time.Duration) {
	start := time.Now().Add(-over)
	var failed error
	for i := range n {
		at := start.Add(over / time.Duration(n) * time.Duration(i))
		f.client.Produce(b.Context(), f.next(at), func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
	}
	if err := f.client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	if failed != nil {
		b.Fatal(failed)
	}
}

// readAll reads and drops everything that was produced.
func (f *feed) readAll(b *testing.B, brokers []string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(transactions, logins),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	for n := 0; n < f.produced; {
		fetches := client.PollFetches(b.Context())
		if err := fetches.Err(); err != nil {
			b.Fatal(err)
		}
		n += fetches.NumRecords()
	}
}

// producedRecord is a produced record: its position, and the times of its creation and of the
// broker's acknowledgement.
type producedRecord struct {
	recordID
	made, acknowledged time.Time
}

// recordID is an offset of a partition.
type recordID struct {
	Topic     string
	Partition int32
	Offset    int64
}

// made makes n events that happen evenly over a time from start on.
func (f *feed) made(n int, start time.Time, over time.Duration) []*kgo.Record {
	events := make([]*kgo.Record, n)
	for i := range events {
		events[i] = f.next(start.Add(time.Duration(float64(over) * float64(i) / float64(n))))
	}
	return events
}

// stream produces events, each when due is true, and returns their positions. The events are made
// in advance, so that the producer takes little of the cores it shares with what is measured.
func (f *feed) stream(b *testing.B, events []*kgo.Record, due func(i int, now time.Time) bool) []producedRecord {
	// The garbage collector must not run meanwhile.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(4 << 30))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	records := make([]producedRecord, len(events))
	var failed atomic.Pointer[error]
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 0; i < len(events); {
		for now := <-tick.C; i < len(events) && due(i, now); i++ {
			r := &records[i]
			r.made = time.Now()
			f.client.Produce(b.Context(), events[i], func(sent *kgo.Record, err error) {
				if err != nil {
					failed.Store(&err)
				}
				r.recordID, r.acknowledged = recordID{sent.Topic, sent.Partition, sent.Offset}, time.Now()
			})
		}
	}
	if err := f.client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
	return records
}
